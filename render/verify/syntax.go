package verify

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds on what is read: far above what vipgen renders for the largest pools.
const (
	maxSize  = 4 << 20
	maxDepth = 8
)

// block is a statement of keepalived.conf, with those in its braces.
type block struct {
	line  int
	words []string
	open  bool // it has braces
	body  []block
}

// wrong is a complaint about the statement.
func (b block) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", b.line, fmt.Sprintf(format, args...))
}

// split takes a text apart into statements.
func split(text []byte) ([]block, error) {
	if len(text) > maxSize {
		return nil, fmt.Errorf("larger than %d MiB", maxSize>>20)
	}
	stack := []block{{open: true}}
	line := 0
	for s := range strings.Lines(string(text)) {
		line++
		words, err := wordsOf(s)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		top := len(stack) - 1
		switch {
		case len(words) == 0:
		case len(words) == 1 && words[0] == "}":
			if top == 0 {
				return nil, fmt.Errorf("line %d: a brace closes that none opened", line)
			}
			stack[top-1].body = append(stack[top-1].body, stack[top])
			stack = stack[:top]
		case words[len(words)-1] == "{":
			if len(words) == 1 || top == maxDepth {
				return nil, fmt.Errorf("line %d: no block can begin here", line)
			}
			stack = append(stack, block{line: line, words: words[:len(words)-1], open: true})
		default:
			stack[top].body = append(stack[top].body, block{line: line, words: words})
		}
	}
	if len(stack) > 1 {
		return nil, stack[len(stack)-1].wrong("the block %s does not end", stack[len(stack)-1].words[0])
	}
	return stack[0].body, nil
}

// wordsOf takes a line apart. Words are between white space or in double quotes;
// # and ! begin a comment.
func wordsOf(line string) ([]string, error) {
	var out []string
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		switch {
		case line == "" || line[0] == '#' || line[0] == '!':
			return out, nil
		case line[0] == '"':
			word, rest, closed := strings.Cut(line[1:], `"`)
			if !closed {
				return nil, errors.New("a quote does not end")
			}
			out, line = append(out, word), rest
		default:
			end := strings.IndexAny(line, " \t\r\n\"#!")
			if end < 0 {
				end = len(line)
			}
			out, line = append(out, line[:end]), line[end:]
		}
	}
}
