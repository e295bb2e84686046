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

// maxOpening is the number of characters that are tried as the start of a mistake.
const maxOpening = 100

// place locates the start of a mistake by parsing pieces of the file: the parser names the line
// at best, and for unclosed text sometimes the last one. Where the pieces do not show it, it is
// the start of the line's text.
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
		} else if n := start + sort.Search(len(text)+1, func(n int) bool { return k.causes(data[:start+n]) }); n > at && n <= start+len(text) {
			at = n - 1
		}
	}
	for at > 0 && at < len(data) && !utf8.RuneStart(data[at]) {
		at--
	}
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// opening returns the last character that can begin the mistake and has none before it.
func (k syntaxKind) opening(data []byte, none int) int {
	tried := 0
	for i := len(data) - 1; i >= 0 && tried < maxOpening; i-- {
		if strings.IndexByte(k.opens, data[i]) < 0 {
			continue
		}
		if !k.causes(data[:i]) {
			return i
		}
		tried++
	}
	return none
}

// causes reports whether the beginning of a file has the mistake. An unclosed bracket has as many
// messages as continuations.
func (k syntaxKind) causes(data []byte) bool {
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
