// Command vipgen-agent is the node agent for keepalived, HAProxy, CoreDNS and mDNS.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/vipgen/vipgen/cmd/agentcli"
	_ "github.com/vipgen/vipgen/internal/liveness/early"
)

func main() {
	frugal()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := agentcli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
