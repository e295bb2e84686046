package ignition

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a string that every YAML parser reads back unchanged. The library would write block
// literals that it or others read differently: those that start with a space, a tab or an empty
// line, or hold a line separator of Unicode.
type text string

// MarshalYAML writes a block literal where it is safe and a quoted string where a plain one is
// not.
func (t text) MarshalYAML() (any, error) {
	s := string(t)
	switch {
	case !utf8.ValidString(s):
		return s, nil // base64 with the tag !!binary
	case isLiteral(s):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: s}, nil
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: s}, nil
	}
	return s, nil
}

// isLiteral reports whether s is safe as a block literal: lines of printable text, as in units
// and configuration files.
func isLiteral(s string) bool {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if !strings.Contains(s, "\n") || lines[0] == "" || lines[len(lines)-1] == "" {
		return false
	}
	if first := lines[0][0]; first == ' ' || first == '\t' {
		return false
	}
	return !slices.ContainsFunc(lines, func(line string) bool {
		return strings.TrimRight(line, " \t") != line || strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) })
	})
}

// texts converts every string in decoded JSON to a text.
func texts(v any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case map[string]any:
		for k := range v {
			v[k] = texts(v[k])
		}
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	}
	return v
}

func textMap(m map[string]string) map[string]text {
	out := make(map[string]text, len(m))
	for k, v := range m {
		out[k] = text(v)
	}
	return out
}

// marshalYAML writes block style with lists at the depth of their key, as oc and kubectl do.
func marshalYAML(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
