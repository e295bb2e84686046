package cli

import (
	"bytes"
	"io"

	"github.com/vipgen/vipgen/internal/tree"
)

// writeReport writes a file as a whole or not at all; none without a name.
func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return tree.WriteFile(name, b.Bytes())
}
