package agentcli

import (
	"github.com/vipgen/vipgen/agent/fabric"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/cmd/command"
)

// kinds lists the JSON objects that commands print; 'vipgen schema' has their schemas.
var kinds = command.Outputs{
	command.OutputOf[fabric.Report]("agent-fabric-check", "FabricCheck"),
	command.OutputOf[levels]("agent-log-level", "LogLevels"),
	command.OutputOf[nodeip.Choice]("agent-node-ip", "NodeAddresses"),
	command.OutputOf[state.Report]("agent-status", state.ReportKind),
	command.OutputOf[vrrpScan]("agent-vrrp-scan", "VRRPScan"),
}

func (a *app) printJSON(v any) error { return kinds.Print(a.out, v) }
