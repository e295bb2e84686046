// Command vipgen-bgp is vipgen-agent with a BGP speaker, for nodes whose routers know the
// VIPs. It is a program of its own so that the jobs of all other nodes do not pay for it.
package main

import (
	"github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/agent/bgp/speaker"
	"github.com/vipgen/vipgen/cmd/agentcli"
	_ "github.com/vipgen/vipgen/internal/liveness/early"
)

func main() {
	bgp.NewSpeaker = speaker.New
	agentcli.Main()
}
