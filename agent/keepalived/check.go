package keepalived

import (
	"bytes"
	"context"
	"errors"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
)

// Check asks keepalived's own parser. Any word of it is a refusal: keepalived 2.2 is
// silent about what it accepts, exits with another status than 0 even for warnings, but
// with 0 for an include that finds no file.
//
// It wants the interfaces that the file names to exist. It does not look at
// addresses of interfaces, peers or the directories of track files.
func Check(program string) daemon.Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, program, "-t", "-f", candidate)
		if err == nil && len(bytes.TrimSpace(out)) > 0 {
			err = errors.New("keepalived complains")
		}
		return daemon.Complaint(candidate, out, err)
	}
}
