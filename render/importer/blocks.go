package importer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds on what is read: far above what nodes have.
const (
	maxText   = 4 << 20
	maxDepth  = 16
	maxBlocks = 100_000
)

// hole stands for an action of a Go template, or a variable of a shell, whose
// value only the node knows.
const hole = "\x01"

// holds says whether a word has a hole.
func holds(word string) bool { return strings.Contains(word, hole) }

// mask replaces template actions by holes, keeping lines. found says that there
// was one. Strings inside of an action may hold braces.
func mask(text []byte) (out string, found bool, err error) {
	if len(text) > maxText {
		return "", false, fmt.Errorf("larger than %d MiB", maxText>>20)
	}
	if !utf8.Valid(text) {
		return "", false, errors.New("bytes that are not UTF-8")
	}
	rest := strings.ReplaceAll(string(text), hole, "?")
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
			return "", true, lineError{line, "a template action without its end"}
		}
		found = true
		b.WriteString(hole)
		action := rest[start : start+end]
		b.WriteString(strings.Repeat("\n", strings.Count(action, "\n")))
		line += strings.Count(action, "\n")
		rest = rest[start+end:]
	}
}

// actionEnd is where the action at the start of s ends, or -1 if another begins
// first.
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

// lineError is a complaint about a line. It quotes nothing of the file.
type lineError struct {
	line int
	text string
}

func (e lineError) Error() string { return e.text }

// statement is a line of words of keepalived.conf or a Corefile, with the
// statements in its braces.
type statement struct {
	line  int
	words []string
	open  bool
	body  []statement
}

// word is the n-th word, "" if there are fewer.
func (s statement) word(n int) string {
	if n >= len(s.words) {
		return ""
	}
	return s.words[n]
}

// blocks takes a masked text apart. comments are the characters that begin one.
func blocks(text, comments string) ([]statement, error) {
	stack := []statement{{open: true}}
	line, count := 0, 0
	var current statement
	push := func() {
		top := &stack[len(stack)-1]
		if len(current.words) > 0 && !onlyHoles(current.words) {
			top.body = append(top.body, current)
			count++
		}
		current = statement{}
	}
	for s := range strings.Lines(text) {
		line++
		words, err := wordsOf(s, comments)
		if err != nil {
			return nil, lineError{line, err.Error()}
		}
		for _, w := range words {
			switch w {
			case open:
				if current.words == nil && !reopen(&stack[len(stack)-1], &current) || len(stack) > maxDepth {
					return nil, lineError{line, "a brace that opens nothing"}
				}
				current.open = true
				stack = append(stack, current)
				current = statement{}
			case closing:
				push()
				if len(stack) == 1 {
					return nil, lineError{line, "a brace that closes nothing"}
				}
				done := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				top := &stack[len(stack)-1]
				top.body = append(top.body, done)
			default:
				if current.words == nil {
					current.line = line
				}
				current.words = append(current.words, strings.TrimPrefix(w, quoted))
			}
		}
		push()
		if count > maxBlocks {
			return nil, lineError{line, "too many statements"}
		}
	}
	if len(stack) > 1 {
		return nil, lineError{stack[len(stack)-1].line, "a block that does not end"}
	}
	return stack[0].body, nil
}

// reopen takes the statement before back, whose brace stands on a line of its own.
func reopen(top, current *statement) bool {
	n := len(top.body)
	if n == 0 || top.body[n-1].open {
		return false
	}
	*current, top.body = top.body[n-1], top.body[:n-1]
	return true
}

func onlyHoles(words []string) bool {
	for _, w := range words {
		if strings.Trim(w, hole) != "" {
			return false
		}
	}
	return true
}

// Words that wordsOf marks: braces, and the beginning of what was in quotes.
const (
	open    = "\x02{"
	closing = "\x02}"
	quoted  = "\x02\""
)

// wordsOf takes a line apart. Words are between white space or in double quotes;
// a brace is one by itself, or at the end of a word.
func wordsOf(line, comments string) ([]string, error) {
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
				return nil, errors.New("quoted text without its closing quote")
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
			case strings.HasSuffix(word, "{") && !strings.HasSuffix(word, "${"):
				out = append(out, word[:len(word)-1], open)
			default:
				out = append(out, shellHoles(word))
			}
		}
	}
}

// shellHoles replaces ${NAME}, which the first releases had in their templates.
func shellHoles(word string) string {
	for {
		before, rest, ok := strings.Cut(word, "${")
		if !ok {
			return word
		}
		_, after, closed := strings.Cut(rest, "}")
		if !closed {
			return word
		}
		word = before + hole + after
	}
}
