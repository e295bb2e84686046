package daemon

import (
	"fmt"
	"strings"
)

// maxComplaint bounds how much of a parser's output goes into logs and status,
// in bytes.
const maxComplaint = 2048

// Complaint adds what a daemon's parser printed about a candidate to its error, without
// the candidate's path, which says nothing to the reader. Without an error it is nil.
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
