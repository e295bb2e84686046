package source_test

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/source"
)

// bomb has ten anchors, each a list of ten aliases to the one before.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i < 10; i++ {
		prev := "*a" + string(rune('0'+i-1))
		name := "a" + string(rune('0'+i))
		b.WriteString(name + ": &" + name + " [" + strings.Repeat(prev+", ", 9) + prev + "]\n")
	}
	return b.String()
}

func TestParseProblems(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"empty", "", "f.yaml:1:1: error: found an empty file, expected one YAML document [syntax]\n"},
		{"null", "---\n---\n", "f.yaml:1:1: error: found an empty file, expected one YAML document [syntax]\n"},
		{"second document", "a: b\n---\n  c: hunter2\n",
			"f.yaml:3:3: error: found a second document, expected one YAML document (put each document into a file of its own) [syntax]\n"},
		{"not UTF-8", "a: b\nc: ü\xff\n", "f.yaml:2:5: error: found bytes that are not UTF-8, expected YAML text in UTF-8 [syntax]\n"},
		{"NUL", "a: b\x00\n", "f.yaml:1:5: error: found the control character \\x00, expected YAML text in UTF-8 [syntax]\n"},
		{"tab", "a:\n\tb: c\n",
			"f.yaml:2:1: error: found a tab, or a character that cannot start a value, expected YAML (indent with spaces; quote text that starts with @, ` or %) [syntax]\n"},
		{"indentation", "# one\n\na:\n  b: c\n d: hunter2\n",
			"f.yaml:5:2: error: found a line that does not fit the mapping around it, expected YAML (look for wrong indentation, or text after a closing quote, on this line or the one before) [syntax]\n"},
		{"key in list", "- b\nhunter2: e\n",
			"f.yaml:2:1: error: found a line that does not fit the list around it, expected YAML (every item starts with \"- \" at the same column) [syntax]\n"},
		{"two colons", "a: b\nb: hunter2: d\n",
			"f.yaml:2:11: error: found a second \": \" where a value is, or wrong indentation, expected YAML (quote text that contains \": \") [syntax]\n"},
		{"open quote beside closed ones", "a: [\"b\", 'c', d: \"it's hunter2]\n",
			"f.yaml:1:18: error: found quoted text without its closing quote, expected YAML [syntax]\n"},
		{"open list in another", "a: [b, {c: [d], e: f]\n", "f.yaml:1:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]\n"},
		{"no colon", "a: b\nhunter2\nc: d\n", "f.yaml:2:1: error: found a line that is neither a key with \": \" nor a list item, expected YAML [syntax]\n"},
		{"unknown alias", "a: b\npassword: *hunter2\n",
			"f.yaml:2:11: error: found an alias to an anchor that the file does not have, expected YAML (quote text that starts with *) [syntax]\n"},
		{"escape", "a: b\nc: \"\\q hunter2\"\n",
			"f.yaml:2:5: error: found an unknown escape in quoted text, expected YAML (write a backslash as \\\\, or use single quotes) [syntax]\n"},
		{"alias to itself", "a: &a [1, *a]\n", "f.yaml:1:11: error: found an alias to the anchor that it is part of [syntax]\n"},
		{"alias bomb", bomb(),
			"f.yaml:6:40: error: found aliases that unfold into too much, expected at most 74192 bytes from aliases in a file of this size [syntax]\n"},
		{"nesting", strings.Repeat("[", 200) + strings.Repeat("]", 200),
			"f.yaml:1:102: error: found nesting that is too deep, expected at most 100 levels [syntax]\n"},
		{"nesting by aliases", "a: &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nb: " +
			strings.Repeat("[", 60) + "*a" + strings.Repeat("]", 60) + "\n",
			"f.yaml:2:64: error: found nesting that is too deep, expected at most 100 levels [syntax]\n"},
		{"too deep for the parser", strings.Repeat("[", 20000), "f.yaml:1:10001: error: found nesting that is too deep, expected YAML [syntax]\n"},
		{"a quote that swallows what comes after it", "g: \"1\nf: [\"x\"]\na:\n  b: y\n",
			"f.yaml:1:4: error: found quoted text without its closing quote, expected YAML [syntax]\n"},
		{"several mistakes", "a: b\ng: [1\nf: {x\n", "f.yaml:2:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]\n"},
		{"a template is no YAML on purpose", "g: [1\nf: {{ x }}\na: y\n",
			"f.yaml:2:4: error: found a template of Jinja, Ansible or Helm, expected a finished file (give the file that it renders to) [template]\n"},
		{"what passwords and comments hold is no template", "# <EOF> ${x}\np: \"hunter2$word<me>${x}\"\ng: [1\n",
			"f.yaml:3:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]\n"},
		{"but on the line of the mistake it is", "p: \"pa$word\"\nf: [${x}, 1]\n",
			"f.yaml:2:5: error: found a shell variable, expected a finished file (fill it in, as with envsubst) [template]\n"},
		{"too large", strings.Repeat("#", source.MaxSize+1), "f.yaml:1:1: error: found 4194305 bytes, expected at most 4194304 [unreadable]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc, problems := source.Parse("f.yaml", []byte(test.in))
			testkit.Equal(t, nil, doc) // none comes with a problem
			got := lines(problems)
			testkit.Equal(t, test.want, got)
			testkit.Lacks(t, got, "hunter2")
		})
	}
}
