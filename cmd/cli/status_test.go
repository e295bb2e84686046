package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestStatus(t *testing.T) {
	copyExport(t, ".")
	const well = `VIP        INSTANCE        HELD BY      OTHERS
192.0.2.5  demo_API_0      master-0 68  master-1 68, master-2 65 (without machine-config)
192.0.2.7  demo_INGRESS_0  worker-0 80  worker-1 fault (ingress-away)

NODE      AGENT   VRRP SETTINGS         KEEPALIVED  HAPROXY  REDIRECT  OWN REQUESTS  COREDNS  MDNS
master-0  v1.2.0  fast/unicast/v3/40ms  takes part  serves   in place  own HAProxy   serves   announced
master-1  v1.2.0  fast/unicast/v3/40ms  takes part  serves   in place  own HAProxy   serves   announced
master-2  v1.2.0  fast/unicast/v3/40ms  takes part  serves   in place  own HAProxy   serves   announced
worker-0  v1.2.0  fast/unicast/v3/40ms  takes part  -        -         VIP           serves   announced
worker-1  v1.2.0  fast/unicast/v3/40ms  takes part  -        -         VIP           serves   announced

Checks that fail
  master-2: machine-config: status 503
  worker-1: ingress-router-answers: connection refused

No findings, but 2 checks fail (see above).
`
	testkit.Equal(t, well, must(t, "status", "nodes"))
	testkit.Contains(t, must(t, "status", "nodes", "-o", "json"), `"findings": []`)
	lay(t, map[string]string{"healthy/a.json": `{"node": "a", "mdns": {"name": "a.local", "announced": true}}`})
	if out := must(t, "status", "healthy"); !strings.HasSuffix(out, "\n\nNothing is wrong.\n") {
		t.Errorf("got\n%s", out)
	}
	lay(t, map[string]string{
		"bgp/a.json": `{"node": "a", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "announced": true}]}}`,
		"bgp/b.json": `{"node": "b", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "announced": true, "preference": 1}]}}`,
		"bgp/c.json": `{"node": "c", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "why": "HAProxy is away"}]}}`,
	})
	testkit.Contains(t, must(t, "status", "bgp"), "198.51.100.5  API       a 0, b 1  c (HAProxy is away)\n",
		"BGP               HAPROXY", "a     -      -              announces 1 of 1  -", "c     -      -              announces 0 of 1  -")
	lay(t, map[string]string{
		"nodes/cluster-scoped-resources/core/nodes/worker-2.yaml": "kind: Node\nmetadata: {name: worker-2}\n",
		"nodes/worker-3.json": "{\"keepalived\": {\"wan",
		"more/master-3.json":  `{"node": "master-3", "version": "v1.3.0", "keepalived": {"wanted": true, "pid": 1, "guard": {"inPlace": true}, "instances": [{"name": "demo_API_0\u001b[31m", "vip": "192.0.2.5", "holds": true, "peers": ["192.0.2.1", "192.0.2.2"]}]}}`,
	})
	code, out, stderr := run("", "status", "nodes", "more/master-3.json")
	testkit.Contains(t, out,
		"192.0.2.5  demo_API_0      master-0 68, master-3 0  master-1 68, ", "\nworker-2  -       -  ", "\n4 findings\n  split-brain: 192.0.2.5: master-0, master-3 hold demo_API_0\n",
		"  versions-differ: agents of several versions: v1.2.0 on master-0, master-1, master-2, worker-0, worker-1; v1.3.0 on master-3\n",
		"  missing-state: worker-2: ", "  unreadable-state: nodes/worker-3.json cannot be read: unexpected EOF\n",
	)
	if code != command.Finding || stderr != "" {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	var got struct {
		VIPs     []struct{ Holders []string }
		Findings []struct{ Code string }
	}
	if _, out, _ = run("", "status", "nodes", "more/master-3.json", "-o", "json"); json.Unmarshal([]byte(out), &got) != nil || len(got.VIPs) != 2 || len(got.VIPs[0].Holders) != 2 || len(got.Findings) != 4 {
		t.Errorf("%+v\n%s", got, out)
	}
	// Output of a node reaches the terminal as text.
	if _, out, _ := run("", "status", "more/master-3.json"); strings.Contains(out, "\x1b") || !strings.Contains(out, `demo_API_0\x1b[31m`) {
		t.Errorf("got %q", out)
	}
	lay(t, map[string]string{"other.json": `{"hello": 1}`, "none/other.json": `{"hello": 1}`})
	for args, want := range map[string]int{
		"status": command.Input, "status no-such": command.Failed, "status other.json": command.Input, "status none": command.Input, "status nodes -o yaml": command.Input,
	} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}
