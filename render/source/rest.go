package source

import (
	"bytes"
	"errors"
	"regexp"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
)

// maxMistakes is how many mistakes of syntax one report of a file names.
const maxMistakes = 10

// ReadRest is for a file that Parse refuses: it gives the other mistakes of syntax, and
// of the errors that reading finds in the rest those that stand whatever belongs in the
// place of the mistakes. See Rest for the depth.
func ReadRest(file string, data []byte, depth int, read func(*Document) problem.List) problem.List {
	doc, list := Rest(file, data, depth)
	if doc == nil {
		return list
	}
	return append(list, doc.Unfinished(doc.Sound(read(doc)))...)
}

// Rest reads what is left of a file that Parse refuses once the entries of its mapping
// that are not YAML are taken out, or entries of entries down to a depth; lines and columns
// stay. It returns the mistakes in them after the first, which Parse reports. The document
// is nil where nothing is left, or where what is left may mean something else: in a file
// that is a template, and with an alias to what was taken out.
//
// A mistake may swallow what comes after it, as an open quote does. So the entry with the
// mistake is the first one that is no YAML together with those before it.
func Rest(file string, data []byte, depth int) (*Document, problem.List) {
	var list problem.List
	for range maxMistakes {
		doc, found := Parse(file, data)
		if doc != nil {
			return doc, list[min(len(list), 1):]
		}
		list = append(list, found...)
		at := mistaken(data, span{0, len(data)}, depth)
		if found[0].Code != problem.Syntax || at.to == 0 || bytes.ContainsAny(data[at.from:at.to], "&") {
			break
		}
		if data = blank(data, at); len(blocks(data, span{0, len(data)})) == 0 {
			break
		}
	}
	return nil, list[1:]
}

// Sound keeps the errors that what was taken out cannot be the cause of: those of
// fields that are there.
func (d *Document) Sound(list problem.List) problem.List {
	return slices.DeleteFunc(list.Errors(), func(p problem.Problem) bool { return !d.Has(p.Field) })
}

// span is a part of a file, whole lines.
type span struct{ from, to int }

// entryKey is a key at the beginning of a line.
var entryKey = regexp.MustCompile(`(?m)^( *)[A-Za-z][\w.-]*:(?:[ \t\r]|$)`)

// blocks are the entries of the mapping that part of a file consists of, each up to
// the next one; none of a list, whose items count.
func blocks(data []byte, in span) []span {
	if bytes.HasPrefix(bytes.TrimLeft(data[in.from:in.to], " \n"), []byte("-")) && in.from > 0 {
		return nil
	}
	var out []span
	indent := -1
	for _, m := range entryKey.FindAllSubmatchIndex(data[in.from:in.to], -1) {
		if indent < 0 {
			indent = m[3] - m[2]
		}
		if m[3]-m[2] != indent {
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].to = in.from + m[0]
		}
		out = append(out, span{in.from + m[0], in.to})
	}
	return out
}

// mistaken is the first entry that is no YAML together with all before it, or the entry
// in it that is to blame, down to a depth; zero where there is none.
func mistaken(data []byte, in span, depth int) span {
	for _, e := range blocks(data, in) {
		if !broken(data[:e.to]) {
			continue
		}
		if line := bytes.IndexByte(data[e.from:e.to], '\n'); depth > 1 && line >= 0 {
			inner := mistaken(data, span{e.from + line + 1, e.to}, depth-1)
			if inner.to > 0 && !broken(blank(data[:e.to], inner)) {
				return inner
			}
		}
		return e
	}
	return span{}
}

// upToMistake is a file up to the end of the entry with the first mistake, and what the
// parser says of that: of the whole it may name a place far below.
func upToMistake(data []byte, err error) ([]byte, error) {
	if errors.As(err, new(errSecond)) || len(data) > maxBisect {
		return data, err
	}
	at := mistaken(data, span{0, len(data)}, 1)
	if at.to == 0 {
		return data, err
	}
	var d Document
	if _, first := d.read(data[:at.to]); first != nil {
		return data[:at.to], first
	}
	return data, err
}

func broken(data []byte) bool { return syntaxKind{opens: brackets}.made(data) }

// blank is a file with empty lines in the place of some.
func blank(data []byte, at span) []byte {
	lines := bytes.Repeat([]byte("\n"), bytes.Count(data[at.from:at.to], []byte("\n")))
	return slices.Concat(data[:at.from], lines, data[at.to:])
}
