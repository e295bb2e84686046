package problem

import "strconv"

// maxQuoted is the longest text in a report, in characters.
const maxQuoted = 80

// Quote returns text in the form of reports: quoted, with unprintable characters escaped, and
// cut after 80 characters.
func Quote(s string) string {
	shown := 0
	for i := range s {
		if shown == maxQuoted {
			return strconv.Quote(s[:i]) + "..."
		}
		shown++
	}
	return strconv.Quote(s)
}
