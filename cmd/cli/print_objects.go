package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/cmd/command"
)

// printObjects prints a YAML stream of objects unchanged, or as a List in JSON.
func printObjects(w io.Writer, stream []byte, o command.Format) error {
	if o != "json" {
		_, err := w.Write(stream)
		return err
	}
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", []json.RawMessage{}}
	for document := range bytes.SplitSeq(append([]byte("\n"), stream...), []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, object)
	}
	return command.JSON(w, list)
}
