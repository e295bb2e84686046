package agentcli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"

	"github.com/vipgen/vipgen/cmd/command"
)

func TestVRRPScan(t *testing.T) {
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.0.2.9/24")
	scan := func(args string) (code int, out, errOut string) {
		var o, e bytes.Buffer
		if err := node.Do(func() error {
			code = Run(context.Background(), append([]string{"vrrp", "scan"}, strings.Fields(args)...), &o, &e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		checkOutput(t, strings.Fields(args), o.String())
		return code, o.String(), e.String()
	}
	code, out, errOut := scan("--duration 100ms -o json")
	var got struct {
		Interfaces []string
		Routers    []any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != command.OK || len(got.Interfaces) != 1 || got.Routers == nil {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errOut)
	}
	if code, out, errOut := scan("--duration 100ms --interface eth0"); code != command.OK || !strings.HasPrefix(out, "ID  FAMILY") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := scan("--duration 0s"); code != command.Input {
		t.Errorf("no time: exit code %d\n%s", code, errOut)
	}
	if code, _, errOut := scan("--interface no-such --duration 1s"); code != command.Failed || !strings.Contains(errOut, "this host has") {
		t.Errorf("no interface: exit code %d\n%s", code, errOut)
	}
}
