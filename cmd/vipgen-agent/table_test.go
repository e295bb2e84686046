package main

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// row is a line of the table.
type row struct{ what, measured, aim, verdict, notes string }

func (m *measurement) add(what, measured, aim string, met bool, notes string) {
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	m.rows = append(m.rows, row{what, measured, aim, verdict, notes})
}

// times adds a row of durations, the longest of which must be within the target.
func (m *measurement) times(what string, took []time.Duration, aim time.Duration) {
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	m.add(what, ms(median), ms(aim), worst < aim, fmt.Sprintf("median; worst of %d: %s", len(took), ms(worst)))
}

func (m *measurement) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\tmeasured\taim\t\t")
	for _, r := range m.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.aim, r.verdict, r.notes)
	}
	w.Flush()
}

func mib(kib int) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
