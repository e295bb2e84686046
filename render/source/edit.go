package source

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// SetNumber returns data, a YAML file, with a number set in a field such as
// "spec.vrrp.virtualRouterIDs.api". Comments and the order of keys stay; the YAML library lays
// the file out. Missing parents are added; items of lists must exist.
func SetNumber(data []byte, field string, value int) ([]byte, error) {
	if p := new(Document).load(data); p != nil {
		return nil, fmt.Errorf("%s", p)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	n := doc.Content[0]
	for _, s := range parsePath(field) {
		if n = ownChild(n, s); n == nil {
			return nil, fmt.Errorf("%s: no such item, or an alias or another value in its place", field)
		}
	}
	if n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return nil, fmt.Errorf("%s: another value in its place", field)
	}
	n.Tag, n.Style, n.Value = "!!int", 0, strconv.Itoa(value)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	err := errors.Join(enc.Encode(&doc), enc.Close())
	return out.Bytes(), err
}

// ownChild returns the node at a step below n, added where a mapping lacks it; nil for a missing
// item, and below a value that other parts of the file share by its anchor.
func ownChild(n *yaml.Node, s step) *yaml.Node {
	if isNull(n) {
		n.Kind, n.Tag, n.Value = yaml.MappingNode, "!!map", ""
	}
	switch {
	case n.Anchor != "":
		return nil
	case s.name == "" && n.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(n.Content):
		return n.Content[s.index]
	case s.name == "" || n.Kind != yaml.MappingNode:
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == s.name {
			return n.Content[i+1]
		}
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.name}, value)
	return value
}
