package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vipgen/vipgen/internal/page/timeline"
)

// against returns the ratio to the reference as text.
func (r *Report) against(s Scenario, one Result) string {
	if one.Profile == r.Reference && r.Reference != "" {
		return "reference"
	}
	ratio, ok := r.ratio(s, one)
	switch {
	case !ok:
		return "-"
	case ratio == 0:
		return "no outage"
	case ratio >= 0.995 && ratio < 1.005:
		return "the same"
	case ratio < 1:
		return factor(1/ratio) + " shorter"
	}
	return factor(ratio) + " longer"
}

func factor(f float64) string {
	if f < 10 {
		return fmt.Sprintf("%.2gx", f)
	}
	return fmt.Sprintf("%.0fx", f)
}

// words describes whether an aim was met, and by how much it was missed.
func (v Verdict) words() string {
	if v.met() {
		return "met"
	}
	var missed []string
	if v.Median > 0 {
		missed = append(missed, "median +"+timeline.Milliseconds(v.Median))
	}
	if v.Worst > 0 {
		missed = append(missed, "worst +"+timeline.Milliseconds(v.Worst))
	}
	if v.Lost > 0 {
		missed = append(missed, fmt.Sprintf("lost +%d", v.Lost))
	}
	return "missed: " + strings.Join(missed, ", ")
}

// verdict returns the verdict as text, or a dash if there is no aim.
func (s Scenario) verdict(r Result) string {
	if v, ok := s.Verdict(r); ok {
		return v.words()
	}
	return "-"
}

// words describes the aim.
func (a *Aim) words() string {
	text := fmt.Sprintf("median %s, worst %s, %d lost", timeline.Milliseconds(a.Median), timeline.Milliseconds(a.Worst), a.Lost)
	if a.Profile != "" {
		text += ", for " + a.Profile
	}
	return text
}

// tolerated is the longest pause of a client that needs no remark.
const tolerated = 50 * time.Millisecond

// remarks returns the result of other nodes, and the reasons to doubt the figures of a result.
func (r Result) remarks() []string {
	var remarks []string
	if o := r.others(); o != nil {
		remarks = append(remarks, fmt.Sprintf("With %s the figures are those of connections to the affected node. Of those to other nodes at most %d of %d in a run were lost, in %s.",
			plain(r.Profile), o.Lost, o.Asked, timeline.Milliseconds(o.Outage)))
	}
	if failed := r.failed(); failed != "" {
		remarks = append(remarks, failed)
	}
	if pause := r.pause(); pause > tolerated {
		remarks = append(remarks, fmt.Sprintf("The machine was busy: with %s the client did not ask for up to %s, and no figure is better than that.",
			plain(r.Profile), timeline.Milliseconds(pause)))
	}
	return remarks
}

// failed returns the number of failed runs of a result, and the first error.
func (r Result) failed() string {
	failed := r.Failed()
	if len(failed) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d runs with %s failed, the first: %s", len(failed), len(r.Runs), r.Profile, plain(failed[0]))
}

// plain returns text as one line without control characters.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}

// capital returns text with a capital first letter.
func capital(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}
