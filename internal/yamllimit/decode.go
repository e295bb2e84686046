package yamllimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/lazy"
)

// ToJSON returns a YAML document as JSON. The error of one that unfolds into too much says
// where.
func ToJSON(document []byte) ([]byte, error) {
	if err := Bound(document); err != nil {
		return nil, err
	}
	return kyaml.YAMLToJSON(document)
}

// UnmarshalStrict reads a YAML document into v, in which every field must be known.
func UnmarshalStrict(document []byte, v any) error {
	if err := Bound(document); err != nil {
		return err
	}
	return kyaml.UnmarshalStrict(document, v)
}

// mayAlias matches what can be an alias. Most exports have none, and need no second reading.
var mayAlias = lazy.Regexp(`(?:^|[\s,:\[{])\*[^\s*]`)

// Bound reports what unfolds into too much, of YAML that another library decodes.
func Bound(data []byte) error {
	if !mayAlias().Match(data) {
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
