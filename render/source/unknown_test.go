package source_test

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/source"
)

func TestDecodeKnown(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type outer struct {
		Inner inner   `json:"inner"`
		List  []inner `json:"list"`
		Free  inner   `json:"free"`
	}
	known := map[string][]string{"": {"inner", "list", "free", "other"}, "inner": {"name", "colour"}, "list[]": {"name"}}
	for _, tt := range []struct{ what, in, want string }{
		{"known", "{inner: {name: a, colour: b}, other: {x: y}}", ""},
		{"known in another case", "{inner: {name: a, Colour: b}}", ""},
		{"left alone", "{free: {naem: a}}", ""},
		{"of a field that is read", "{inner: {nane: a}}",
			`f:1:10: error: inner.nane: found "nane", expected a field that OpenShift's installer has (did you mean "name"?) [unknown-field]`},
		{"of another", "{inner: {color: a}}",
			`f:1:10: warning: inner.color: found "color", expected a field that OpenShift's installer has (did you mean "colour"?) [unknown-field]`},
		{"in a list", "{list: [{name: a}, {nane: a}]}",
			`f:1:21: error: list[1].nane: found "nane", expected a field that OpenShift's installer has (did you mean "name"?) [unknown-field]`},
		{"of the wrong mapping, read", "{inner: {}, name: a}",
			`f:1:13: error: name: found "name", expected a field that OpenShift's installer has (it belongs under inner) [unknown-field]`},
		{"of the wrong mapping, not read", "{colour: a}",
			`f:1:2: warning: colour: found "colour", expected a field that OpenShift's installer has (it belongs under inner) [unknown-field]`},
		{"a secret", "{inner: {hunter2: a}}",
			`f:1:10: warning: inner: found an unknown field, expected a field that OpenShift's installer has [unknown-field]`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			doc, problems := source.Parse("f", []byte(tt.in))
			if problems != nil {
				t.Fatal(problems)
			}
			var into outer
			testkit.Equal(t, tt.want, doc.DecodeKnown(&into, known).Error())
		})
	}
}
