package source

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxOpening is how many characters are tried as the one that a mistake begins with.
const maxOpening = 100

// place finds where a mistake begins, by trying pieces of the file: the parser says the
// line at most, and of what is not closed sometimes the last one. Where the pieces do not
// show it, it is where the text of the line begins.
func (k syntaxKind) place(data []byte, line int) (atLine, column int) {
	start := 0
	for range line - 1 {
		start += bytes.IndexByte(data[start:], '\n') + 1
	}
	text, _, _ := bytes.Cut(data[start:], []byte("\n"))
	at := start + len(text) - len(bytes.TrimLeft(text, " "))
	if k.message != "" && !k.line && len(data) <= maxBisect {
		if k.opens != "" {
			at = k.opening(data[:start+len(text)], at)
		} else if n := start + sort.Search(len(text)+1, func(n int) bool { return k.made(data[:start+n]) }); n > at && n <= start+len(text) {
			at = n - 1
		}
	}
	for at > 0 && at < len(data) && !utf8.RuneStart(data[at]) {
		at--
	}
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// opening is the last character that can begin the mistake and has none before it.
func (k syntaxKind) opening(data []byte, none int) int {
	tried := 0
	for i := len(data) - 1; i >= 0 && tried < maxOpening; i-- {
		if strings.IndexByte(k.opens, data[i]) < 0 {
			continue
		}
		if !k.made(data[:i]) {
			return i
		}
		tried++
	}
	return none
}

// made reports whether the mistake was made in the beginning of a file. A bracket without
// its end has as many messages as there are ways to go on.
func (k syntaxKind) made(data []byte) bool {
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			return k.opens == brackets || strings.Contains(err.Error(), k.message)
		}
	}
}
