package problem

import "strconv"

// maxQuoted is how much of a text a report shows, in characters.
const maxQuoted = 80

// Quote gives text as it is shown in reports: quoted, with everything that
// does not print escaped, and cut where it is longer than 80 characters.
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
