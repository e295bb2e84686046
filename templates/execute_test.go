package templates

import (
	"strings"
	"testing"
)

func TestExecute(t *testing.T) {
	type data struct{ Name string }
	for _, tt := range []struct {
		name, text string
		data       any
		want       string
		err        string // part of the error
	}{
		{"field", "a {{ .Name }}\n", data{"b"}, "a b\n", ""},
		{"no line end", "a", nil, "a\n", ""},
		{"empty", "\n \n", nil, "", ""},
		{"blank lines become one", "\n\na\n\n\n\nb\n \t\nc\n\n", nil, "a\n\nb\n\nc\n", ""},
		{"blanks at ends of lines go", "  a \t\nb  \n", nil, "  a\nb\n", ""},
		{"sprig", `{{ list "b" "a" | sortAlpha | join "," }}`, nil, "a,b\n", ""},
		{"missing key", "{{ .nope }}", map[string]string{}, "", `map has no entry for key "nope"`},
		{"missing field", "{{ .Nope }}", data{}, "", "can't evaluate field Nope"},
		{"syntax", "{{ .Name", data{}, "", "template x: "},
		{"clock", "{{ now }}", nil, "", `"now" not defined`},
		{"environment", `{{ env "HOME" }}`, nil, "", `"env" not defined`},
		{"random", "{{ randAlpha 3 }}", nil, "", `"randAlpha" not defined`},
		{"network", `{{ getHostByName "localhost" }}`, nil, "", `"getHostByName" not defined`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Execute("x", tt.text, tt.data)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want one with %q", err, tt.err)
			case string(got) != tt.want:
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
