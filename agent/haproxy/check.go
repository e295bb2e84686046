package haproxy

import (
	"context"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/lazy"
)

// Check asks HAProxy's own parser, whose warnings are no refusal: a later HAProxy that
// deprecates a keyword must not keep a cluster from changing its backends. The parser
// binds no address and opens no socket.
func Check(program string) daemon.Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, program, "-c", "-f", candidate)
		return daemon.Complaint(candidate, checkPID().ReplaceAll(out, []byte("$1 ")), err)
	}
}

// checkPID is what a line of HAProxy begins with: the process ID of the check,
// which would make the same complaint another one every time.
var checkPID = lazy.Regexp(`(?m)^(\[[A-Z]+\]) +(?:\S+ )?\(\d+\) :(?: |$)`)
