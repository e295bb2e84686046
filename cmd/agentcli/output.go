package agentcli

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/cmd/command"
)

// output is a kind of JSON object that a command prints; 'vipgen schema --of Name' prints its
// schema.
type output struct {
	Name, Kind string
	Type       reflect.Type
}

// kinds lists the JSON objects that commands print.
var kinds = []output{
	{"agent-log-level", "LogLevels", reflect.TypeFor[levels]()},
	{"agent-node-ip", "NodeAddresses", reflect.TypeFor[nodeip.Choice]()},
	{"agent-status", state.ReportKind, reflect.TypeFor[state.Report]()},
	{"agent-vrrp-scan", "VRRPScan", reflect.TypeFor[vrrpScan]()},
}

// printJSON prints an object of one of the kinds to standard output.
func (a *app) printJSON(v any) error {
	i := slices.IndexFunc(kinds, func(o output) bool { return o.Type == reflect.TypeOf(v) })
	if i < 0 {
		return fmt.Errorf("%T is no kind of output", v)
	}
	return command.Object(a.out, kinds[i].Kind, v)
}
