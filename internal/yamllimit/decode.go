package yamllimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// ToJSON returns a YAML document as JSON. The error for too much unfolding has its position.
func ToJSON(document []byte) ([]byte, error) {
	if err := Bound(document); err != nil {
		return nil, err
	}
	return kyaml.YAMLToJSON(document)
}

// UnmarshalStrict decodes a YAML document into v; unknown fields are errors.
func UnmarshalStrict(document []byte, v any) error {
	if err := Bound(document); err != nil {
		return err
	}
	return kyaml.UnmarshalStrict(document, v)
}

// mayAlias reports whether a text may have aliases: a star after a space or a sign of YAML, and
// before a name. Most exports have none, and need no second parsing.
func mayAlias(data []byte) bool {
	for i := 0; ; i++ {
		next := bytes.IndexByte(data[i:], '*')
		if next < 0 {
			return false
		}
		if i += next; i+1 == len(data) {
			return false
		}
		if (i == 0 || strings.IndexByte(" \t\r\n\f,:[{", data[i-1]) >= 0) && strings.IndexByte(" \t\r\n\f*", data[i+1]) < 0 {
			return true
		}
	}
}

// Bound reports too much unfolding in YAML that another library decodes.
func Bound(data []byte) error {
	if !mayAlias(data) {
		return nil
	}
	limits := New(len(data))
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if p := limits.Check(&n); p != nil {
			return fmt.Errorf("line %d: %s: %s", p.Line, p.Found, p.Expected)
		}
	}
}
