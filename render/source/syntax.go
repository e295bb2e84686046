package source

import (
	"bytes"
	"errors"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
)

// checkCharacters returns the first byte that YAML 1.2 section 5.1 forbids. The parser finds it
// too, but without its position.
func checkCharacters(data []byte) *problem.Problem {
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := rune(data[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[i:])
		}
		found := ""
		switch {
		case r == utf8.RuneError && size == 1:
			found = "bytes that are not UTF-8"
		case !printable(r) && (r != '\uFEFF' || i != 0):
			found = "the control character " + strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		if found != "" {
			return &problem.Problem{
				Line:     line,
				Column:   utf8.RuneCount(data[start:i]) + 1,
				Code:     problem.Syntax,
				Found:    found,
				Expected: "YAML text in UTF-8",
			}
		}
		i += size
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return nil
}

// printable is c-printable of YAML 1.2 section 5.1.
func printable(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f, r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r >= 0xa0 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd && r != 0xfeff:
		return true
	}
	return r >= 0x10000
}

var yamlError = lazy.Regexp(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxKind is a message of the parser.
type syntaxKind struct {
	message, found, hint string
	// parser is set where the library counts lines from 0, bisect where it names the line of
	// the mapping or list around the mistake.
	parser, bisect bool
	// line is set where the whole line is the mistake.
	line bool
	// opens has the characters that can begin the mistake; empty for any.
	opens string
}

const brackets = "[{"

// syntaxKinds maps the parser's messages to what is wrong and what to do. Other messages may
// quote the file, so none is passed on.
var syntaxKinds = []syntaxKind{
	{message: "did not find expected key", parser: true, bisect: true,
		found: "a line that does not fit the mapping around it",
		hint:  "look for wrong indentation, or text after a closing quote, on this line or the one before"},
	{message: "did not find expected '-' indicator", parser: true, bisect: true, line: true,
		found: "a line that does not fit the list around it",
		hint:  "every item starts with \"- \" at the same column"},
	{message: "mapping values are not allowed",
		found: "a second \": \" where a value is, or wrong indentation",
		hint:  "quote text that contains \": \""},
	{message: "found character that cannot start any token",
		found: "a tab, or a character that cannot start a value",
		hint:  "indent with spaces; quote text that starts with @, ` or %"},
	{message: "found a tab character",
		found: "a tab in the indentation",
		hint:  "indent with spaces"},
	{message: "found unexpected end of stream",
		found: "quoted text without its closing quote", opens: "\"'"},
	{message: "could not find expected ':'",
		found: "a line that is neither a key with \": \" nor a list item"},
	{message: "did not find expected ',' or", parser: true,
		found: "a [ or { that is not closed, or lacks a comma", opens: brackets},
	{message: "did not find expected node content", parser: true,
		found: "a [ or { that is not closed, or lacks a value", opens: brackets},
	{message: "unknown anchor", bisect: true, opens: "*",
		found: "an alias to an anchor that the file does not have",
		hint:  "quote text that starts with *"},
	{message: "exceeded max depth", found: "nesting that is too deep"},
	{message: "unknown escape character", found: "an unknown escape in quoted text",
		hint: "write a backslash as \\\\, or use single quotes"},
}

// syntaxProblem describes and locates what the parser refused.
func syntaxProblem(data []byte, err error) *problem.Problem {
	p := &problem.Problem{Line: 1, Column: 1, Code: problem.Syntax, Expected: "one YAML document"}
	if second, ok := errors.AsType[errSecond](err); ok {
		p.Line, p.Column = second.line, second.column
		p.Found = "a second document"
		p.Hint = "put each document into a file of its own"
		return p
	}
	p.Found = "text that is not YAML"
	p.Expected = "YAML"
	parts := yamlError().FindStringSubmatch(err.Error())
	if parts == nil {
		return p
	}
	line, _ := strconv.Atoi(parts[1])
	var kind syntaxKind
	for _, kind = range syntaxKinds {
		if strings.Contains(parts[2], kind.message) {
			p.Found, p.Hint = kind.found, kind.hint
			break
		}
		kind = syntaxKind{}
	}
	if kind.parser {
		line++ // the library counts from 0
	}
	if kind.bisect && len(data) <= maxBisect {
		line = bisect(data, kind.message)
	}
	p.Line = min(max(line, 1), bytes.Count(data, []byte("\n"))+1)
	p.Line, p.Column = kind.place(data, p.Line)
	return p
}

// maxBisect is the largest file, in bytes, that bisect and place may parse repeatedly.
const maxBisect = 256 << 10

// bisect returns the first line at which the parser gives a message. The parser itself names
// the start of the mapping or list, which may be far above. It stops at the first mistake, so
// once a line brings the message, every longer piece of the file brings it too.
func bisect(data []byte, message string) int {
	ends := []int{0}
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(data))
	return sort.Search(len(ends)-1, func(lines int) bool {
		return syntaxKind{message: message}.causes(data[:ends[lines]])
	})
}
