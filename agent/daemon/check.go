package daemon

import (
	"fmt"
	"strings"
)

// maxComplaint bounds the part of a parser's output in logs and status, in bytes.
const maxComplaint = 2048

// Complaint appends a parser's output about a candidate to its error, without the
// candidate's path, which is temporary. It returns nil without an error.
func Complaint(candidate string, printed []byte, err error) error {
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(strings.TrimSpace(string(printed)), candidate, "candidate")
	if len(text) > maxComplaint {
		text = text[:maxComplaint] + "..."
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
