package nodes

import (
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		names string
		fails bool
	}{
		"nodes": {`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
			node("a", "", "", "") + `,` + node("b", "", "", "") + `]}`, "a b", false},
		"items first":    {`{"items":[],"metadata":{"resourceVersion":"9"},"kind":"NodeList"}`, "", false},
		"null":           {`{"metadata":{"resourceVersion":"9"},"items":null}`, "", false},
		"cut short":      {`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{}}`, "", true},
		"cut at the end": {`{"metadata":{"resourceVersion":"9"},"items":[]`, "", true},
		"not a list":     {`{"metadata":{"resourceVersion":"9"},"items":{}}`, "", true},
		"not an object":  {`[]`, "", true},
		"empty":          {``, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readList[nodeObject](strings.NewReader(c.in))
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			if err != nil {
				return
			}
			l := got.(*list[nodeObject])
			var names []string
			for _, n := range l.Items {
				names = append(names, n.Name)
			}
			if s := strings.Join(names, " "); s != c.names || l.ResourceVersion != "9" {
				t.Errorf("got %q at %q, want %q at 9", s, l.ResourceVersion, c.names)
			}
		})
	}
}
