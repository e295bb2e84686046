// Command vipgen-agent is the node agent for keepalived, HAProxy, CoreDNS and mDNS.
package main

import (
	"github.com/vipgen/vipgen/cmd/agentcli"
	_ "github.com/vipgen/vipgen/internal/liveness/early"
)

func main() { agentcli.Main() }
