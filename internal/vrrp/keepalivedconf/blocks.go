package keepalivedconf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the input: far above what nodes have.
const (
	maxText   = 4 << 20
	maxDepth  = 16
	maxBlocks = 100_000
)

// Hole replaces an action of a template, whose value only the node knows.
const Hole = "\x01"

// HasHole reports whether a word has a hole.
func HasHole(word string) bool { return strings.Contains(word, Hole) }

// mask replaces template actions by holes, keeping lines. found is set if there was one.
// Strings in an action may hold braces. The error is a syntaxError, or reports that the text
// cannot be a template.
func mask(text []byte) (out string, found bool, err error) {
	if len(text) > maxText {
		return "", false, fmt.Errorf("larger than %d MiB", maxText>>20)
	}
	if !utf8.Valid(text) {
		return "", false, errors.New("bytes that are not UTF-8")
	}
	rest := strings.ReplaceAll(string(text), Hole, "?")
	var b strings.Builder
	line := 1
	for {
		start := strings.Index(rest, "{{")
		if start < 0 {
			b.WriteString(rest)
			return b.String(), found, nil
		}
		b.WriteString(rest[:start])
		line += strings.Count(rest[:start], "\n")
		end := actionEnd(rest[start:])
		if end < 0 {
			return "", true, &syntaxError{line, "unterminated template action"}
		}
		found = true
		b.WriteString(Hole)
		action := rest[start : start+end]
		b.WriteString(strings.Repeat("\n", strings.Count(action, "\n")))
		line += strings.Count(action, "\n")
		rest = rest[start+end:]
	}
}

// actionEnd returns the end of the action at the start of s, or -1 if another begins first.
func actionEnd(s string) int {
	quote := byte(0)
	for n := 2; n < len(s); n++ {
		switch c := s[n]; {
		case quote == 0 && (c == '"' || c == '`'):
			quote = c
		case quote == '"' && c == '\\':
			n++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && c == '{' && s[n-1] == '{' && n > 2:
			return -1
		case quote == 0 && c == '}' && s[n-1] == '}' && n > 2:
			return n + 1
		}
	}
	return -1
}

// syntaxError is an error on a line. It quotes nothing of the file.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return e.text }

// Statement is a line of words, with the statements in its braces.
type Statement struct {
	Line  int
	Words []string
	Open  bool // it has braces
	Body  []Statement
}

// Word returns the n-th word, "" if there are fewer.
func (s Statement) Word(n int) string {
	if n >= len(s.Words) {
		return ""
	}
	return s.Words[n]
}

// LineOf returns the line of the last statement in the body that begins with a word, or, with
// more words, of the last one in the bodies of such; 0 for none.
func (s Statement) LineOf(word string, more ...string) (line int) {
	for _, b := range s.Body {
		switch {
		case b.Word(0) != word:
		case len(more) == 0:
			line = b.Line
		default:
			line = max(line, b.LineOf(more[0], more[1:]...))
		}
	}
	return line
}

// parse parses a masked text. The error is a syntaxError.
func parse(text string) ([]Statement, error) {
	stack := []Statement{{Open: true}}
	line, count := 0, 0
	var current Statement
	push := func() {
		top := &stack[len(stack)-1]
		if slices.ContainsFunc(current.Words, func(w string) bool { return strings.Trim(w, Hole) != "" }) {
			top.Body = append(top.Body, current)
			count++
		}
		current = Statement{}
	}
	for s := range strings.Lines(text) {
		line++
		words, err := wordsOf(s)
		if err != nil {
			return nil, &syntaxError{line, err.Error()}
		}
		for _, w := range words {
			switch w {
			case open:
				if current.Words == nil && !reopen(&stack[len(stack)-1], &current) || len(stack) > maxDepth {
					return nil, &syntaxError{line, "unexpected \"{\""}
				}
				current.Open = true
				stack = append(stack, current)
				current = Statement{}
			case closing:
				push()
				if len(stack) == 1 {
					return nil, &syntaxError{line, "unexpected \"}\""}
				}
				done := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				top := &stack[len(stack)-1]
				top.Body = append(top.Body, done)
			default:
				if current.Words == nil {
					current.Line = line
				}
				current.Words = append(current.Words, strings.TrimPrefix(w, quoted))
			}
		}
		push()
		if count > maxBlocks {
			return nil, &syntaxError{line, "too many statements"}
		}
	}
	if len(stack) > 1 {
		return nil, &syntaxError{stack[len(stack)-1].Line, "unterminated block"}
	}
	return stack[0].Body, nil
}

// reopen reopens the last statement, whose brace is on a line of its own.
func reopen(top, current *Statement) bool {
	n := len(top.Body)
	if n == 0 || top.Body[n-1].Open {
		return false
	}
	*current, top.Body = top.Body[n-1], top.Body[:n-1]
	return true
}

// comments are the characters that begin a comment.
const comments = "#!"

// Marks of wordsOf: braces, and the beginning of a quoted word.
const (
	open    = "\x02{"
	closing = "\x02}"
	quoted  = "\x02\""
)

// wordsOf splits a line into words. They are separated by white space or in double quotes; a
// brace is a word by itself, or at the end of a word.
func wordsOf(line string) ([]string, error) {
	line = strings.ReplaceAll(line, "\x02", "?")
	var out []string
	for {
		line = strings.TrimLeft(line, " \t\r\n\v\f")
		switch {
		case line == "" || strings.IndexByte(comments, line[0]) >= 0:
			return out, nil
		case line[0] == '"':
			word, rest, closed := strings.Cut(line[1:], `"`)
			for closed && strings.HasSuffix(word, `\`) {
				var more string
				more, rest, closed = strings.Cut(rest, `"`)
				word += `"` + more
			}
			if !closed {
				return nil, errors.New("unterminated quoted string")
			}
			out, line = append(out, quoted+word), rest
		default:
			end := strings.IndexAny(line, " \t\r\n\v\f\""+comments)
			if end < 0 {
				end = len(line)
			}
			word := line[:end]
			line = line[end:]
			switch {
			case word == "{":
				out = append(out, open)
			case word == "}":
				out = append(out, closing)
			case strings.HasSuffix(word, "{"):
				out = append(out, word[:len(word)-1], open)
			default:
				out = append(out, word)
			}
		}
	}
}
