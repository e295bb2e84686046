package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// clientTable is the table of a scenario's clients: a row for each profile and place, a column for
// each kind.
type clientTable struct {
	Kinds []string
	Rows  []clientRow
}

// clientRow has a cell for each of Kinds.
type clientRow struct {
	Profile, Place string
	Cells          []string
}

// clients returns the table of a scenario; nil if no run had clients.
func (s Scenario) clients() *clientTable {
	t := &clientTable{}
	for _, one := range s.Results {
		for _, run := range one.good() {
			for _, c := range run.Clients {
				if !slices.Contains(t.Kinds, c.Kind) {
					t.Kinds = append(t.Kinds, c.Kind)
				}
			}
		}
	}
	for _, one := range s.Results {
		for _, place := range one.places() {
			row := clientRow{Profile: one.Profile, Place: place}
			for _, kind := range t.Kinds {
				row.Cells = append(row.Cells, one.clientCell(kind, place))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// places returns the places of a result's clients.
func (r Result) places() (out []string) {
	for _, run := range r.good() {
		for _, c := range run.Clients {
			if !slices.Contains(out, c.Place) {
				out = append(out, c.Place)
			}
		}
	}
	return out
}

// clientCell returns the longest wait of a kind of clients at a place, in the median run and in the
// worst, the number of lost elections in all runs, and the number of stuck clients.
func (r Result) clientCell(kind, place string) string {
	var waits []time.Duration
	lost, stuck := 0, 0
	for _, run := range r.good() {
		for _, c := range run.Clients {
			if c.Kind == kind && c.Place == place {
				waits = append(waits, c.Longest)
				lost, stuck = lost+c.Lost, stuck+c.Stuck
			}
		}
	}
	if len(waits) == 0 {
		return "-"
	}
	slices.Sort(waits)
	cell := seconds(waits[len(waits)/2]) + " / " + seconds(waits[len(waits)-1]) + " s"
	if lost > 0 {
		cell += fmt.Sprintf(", %d lost", lost)
	}
	if stuck > 0 {
		cell += fmt.Sprintf(", %d stuck", stuck)
	}
	return cell
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// write writes the table as text.
func (t *clientTable) write(w io.Writer) {
	const head, clients = "longest wait", "clients"
	name, place := len(head), len(clients)
	for _, r := range t.Rows {
		name, place = max(name, utf8.RuneCountInString(plain(r.Profile))), max(place, utf8.RuneCountInString(plain(r.Place)))
	}
	line := func(profile, where string, cells []string) {
		text := fmt.Sprintf("  %-*s %-*s", name, plain(profile), place, plain(where))
		for _, c := range cells {
			text += fmt.Sprintf("  %-23s", plain(c))
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	line(head, clients, t.Kinds)
	for _, r := range t.Rows {
		line(r.Profile, r.Place, r.Cells)
	}
}
