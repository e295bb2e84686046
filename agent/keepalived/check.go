package keepalived

import (
	"bytes"
	"context"
	"errors"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
)

// Check returns a checker that runs keepalived's own parser. Any output is a refusal:
// keepalived 2.2 prints nothing for what it accepts, exits with a status other than 0
// even for warnings, but with 0 for an include that matches no file.
//
// The interfaces in the file must exist. Addresses of interfaces, peers and the
// directories of track files are not checked.
func Check(program string) daemon.Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, program, "-t", "-f", candidate)
		if err == nil && len(bytes.TrimSpace(out)) > 0 {
			err = errors.New("keepalived complains")
		}
		return daemon.Complaint(candidate, out, err)
	}
}
