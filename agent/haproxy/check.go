package haproxy

import (
	"context"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/lazy"
)

// Check returns a checker that runs HAProxy's own parser. Warnings are no refusal: a
// later HAProxy that deprecates a keyword must not block changes of backends. The parser
// binds no address and opens no socket.
func Check(program string) daemon.Checker {
	return func(ctx context.Context, candidate string) error {
		out, err := supervise.Output(ctx, program, "-c", "-f", candidate)
		return daemon.Complaint(candidate, checkPID().ReplaceAll(out, []byte("$1 ")), err)
	}
}

// checkPID matches the process ID of the check at the start of a line, which would make
// every complaint a new one.
var checkPID = lazy.Regexp(`(?m)^(\[[A-Z]+\]) +(?:\S+ )?\(\d+\) :(?: |$)`)
