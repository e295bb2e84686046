package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vipgen/vipgen/internal/page/timeline"
)

// tableWidth is the maximum width of the table in columns.
const tableWidth = 110

// WriteTable writes plain text: for each scenario a line for each profile. Outages are in ms; lost,
// slowest and split brain are the maximum of all runs.
func (r *Report) WriteTable(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, f := range append(r.Origin.facts(), r.Machine...) {
		if f.Value != "" {
			wrap(out, "", fmt.Sprintf("%s: %s", f.Name, f.Value))
		}
	}
	for i, s := range r.Scenarios {
		if i > 0 || len(r.Machine) > 0 {
			fmt.Fprintln(out)
		}
		r.writeScenario(out, s)
	}
	return out.Flush()
}

func (r *Report) writeScenario(w io.Writer, s Scenario) {
	wrap(w, "", fmt.Sprintf("%s (%s, VIP %s)", s.Title, s.Name, s.VIP))
	wrap(w, "  ", s.What)
	if s.Aim != nil {
		wrap(w, "  ", "Aim: "+s.Aim.words())
	}
	name := utf8.RuneCountInString("profile")
	for _, one := range s.Results {
		name = max(name, utf8.RuneCountInString(plain(one.Profile)))
	}
	fmt.Fprintln(w, row{"profile", "runs", "median", "worst", "lost", "slowest", "split brain", "to reference", "aim"}.format(name))
	for _, one := range s.Results {
		switch median, ok := one.median(); {
		case one.NotApplicable != "":
			wrap(w, "  ", fmt.Sprintf("%-*s not applicable: %s", name, plain(one.Profile), plain(one.NotApplicable)))
		case !ok:
			fmt.Fprintln(w, row{plain(one.Profile), "0", "-", "-", "-", "-", "-", "-", "-"}.format(name))
		default:
			worst, _ := one.worst()
			fmt.Fprintln(w, row{plain(one.Profile), strconv.Itoa(len(one.good())), timeline.Milliseconds(median.Outage), timeline.Milliseconds(worst.Outage),
				strconv.Itoa(one.Lost()), timeline.Milliseconds(one.slowest()), timeline.OrDash(one.splitBrain()), r.against(s, one), s.verdict(one)}.format(name))
		}
	}
	if t := s.clients(); t != nil {
		t.write(w)
	}
	for _, one := range s.Results {
		for _, remark := range one.remarks() {
			wrap(w, "  ", remark)
		}
	}
}

// row is a line of the table.
type row struct {
	profile, runs, median, worst, lost, slowest, two, against, aim string
}

// format aligns a row; an aim that does not fit is moved to a line of its own.
func (r row) format(name int) string {
	line := fmt.Sprintf("  %-*s %4s %9s %9s %6s %9s %11s  %-13s", name, r.profile, r.runs, r.median, r.worst, r.lost, r.slowest, r.two, r.against)
	if utf8.RuneCountInString(line+" "+r.aim) > tableWidth {
		line = strings.TrimRight(line, " ") + "\n" + strings.Repeat(" ", name+2)
	}
	return strings.TrimRight(line+" "+r.aim, " ")
}

// wrap writes text as indented lines of at most the table's width, unless a single word is longer.
func wrap(w io.Writer, indent, text string) {
	line := indent
	for _, word := range strings.Fields(plain(text)) {
		switch {
		case line == indent:
			line += word
		case utf8.RuneCountInString(line+" "+word) > tableWidth:
			fmt.Fprintln(w, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	if line != indent {
		fmt.Fprintln(w, line)
	}
}
