package source

import (
	"errors"

	"github.com/vipgen/vipgen/internal/lazy"
)

// entryKey matches a key at the beginning of a line.
var entryKey = lazy.Regexp(`(?m)^( *)[A-Za-z][\w.-]*:(?:[ \t\r]|$)`)

// upToMistake returns the file up to the end of the top-level entry with the mistake, and the
// parser's error for that: for the whole file it may name a line far below, as an open quote
// swallows what follows. The entry is the first that is not YAML together with those before it.
func upToMistake(data []byte, err error) ([]byte, error) {
	if errors.As(err, new(errSecond)) || len(data) > maxBisect {
		return data, err
	}
	indent := -1
	for _, m := range entryKey().FindAllSubmatchIndex(data, -1) {
		first := indent < 0
		if first {
			indent = m[3] - m[2]
		}
		if first || m[3]-m[2] != indent || !(syntaxKind{opens: brackets}).causes(data[:m[0]]) {
			continue
		}
		var d Document
		if _, mistake := d.read(data[:m[0]]); mistake != nil {
			return data[:m[0]], mistake
		}
		return data, err
	}
	return data, err
}
