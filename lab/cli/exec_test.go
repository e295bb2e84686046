package cli

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/control"
)

// TestInside: a node runs the lab's agent with the node's files; other machines have only the
// network in common.
func TestInside(t *testing.T) {
	s := &control.Status{
		Agent:  "/opt/vipgen-agent",
		Nodes:  []control.Node{{Machine: control.Machine{Name: "master-0"}, Power: true, PID: 7, Root: "/lab/master-0"}, {Machine: control.Machine{Name: "master-1"}}},
		Others: []control.Machine{{Name: "client", Namespace: "vg1-1-client"}, {Name: "rack-b", Namespace: "vg1-1-rack-b", Shell: []string{"birdc", "-s", "/run/socket"}}},
	}
	node := []string{"--target", "7", "--mount", "--pid", "--net", "--uts", "--wdns=/lab/master-0", "--"}
	for _, tt := range []struct {
		name       string
		line, want []string
	}{
		{"master-0", []string{"vipgen-agent", "status"}, append(node, "/opt/vipgen-agent", "status")},
		{"master-0", []string{"ip", "vipgen-agent"}, append(node, "ip", "vipgen-agent")},
		{"client", []string{"curl", "-k"}, []string{"--net=/run/netns/vg1-1-client", "--", "curl", "-k"}},
		{"rack-b", []string{"birdc", "show", "route"}, []string{"--net=/run/netns/vg1-1-rack-b", "--", "birdc", "-s", "/run/socket", "show", "route"}},
	} {
		got, env, err := inside(s, tt.name, tt.line)
		testkit.Must(t, err)
		testkit.Equal(t, tt.want, got)
		testkit.Equal(testkit.In(t, tt.name, env), slices.Equal(env, []string{"VIPGEN_ROOT=/lab/master-0"}), tt.name == "master-0")
	}
	for _, name := range []string{"master-1", "nobody"} {
		if _, _, err := inside(s, name, []string{"true"}); err == nil {
			t.Errorf("%s can be entered", name)
		}
	}
}
