package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/vipgen/vipgen/agent/supervise"
)

// maxComplaint bounds how much of a parser's output goes into logs and status,
// in bytes.
const maxComplaint = 2048

// KeepalivedCheck asks keepalived's own parser. Any word of it is a refusal:
// keepalived 2.2 is silent about what it accepts, exits with another status
// than 0 even for warnings, but with 0 for an include that finds no file.
//
// It wants the interfaces that the file names to exist. It does not look at
// addresses of interfaces, peers or the directories of track files.
func KeepalivedCheck(bin string) Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, bin, "-t", "-f", candidate)
		if err == nil && len(bytes.TrimSpace(out)) > 0 {
			err = errors.New("keepalived complains")
		}
		return complaint(candidate, out, err)
	}
}

// HAProxyCheck asks HAProxy's own parser, whose warnings are no refusal: a later
// HAProxy that deprecates a keyword must not keep a cluster from changing its
// backends. The parser binds no address and opens no socket.
func HAProxyCheck(bin string) Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, bin, "-c", "-f", candidate)
		return complaint(candidate, haproxyPID.ReplaceAll(out, []byte("$1 ")), err)
	}
}

// haproxyPID is what a line of HAProxy begins with: the process ID of the check,
// which would make the same complaint another one every time.
var haproxyPID = regexp.MustCompile(`(?m)^(\[[A-Z]+\]) +(?:\S+ )?\(\d+\) :(?: |$)`)

// complaint adds a parser's words to its error, without the candidate's path,
// which says nothing to the reader.
func complaint(candidate string, out []byte, err error) error {
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(strings.TrimSpace(string(out)), candidate, "candidate")
	if len(text) > maxComplaint {
		text = text[:maxComplaint] + "..."
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
