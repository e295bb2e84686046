package adopt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/adopt"
	"github.com/vipgen/vipgen/render/importer"
)

// nodeObject is an exported Node.
func nodeObject(name, address string, labels ...string) render.File {
	text := fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n  labels:\n    node-role.kubernetes.io/worker: \"\"\n", name)
	for _, l := range labels {
		text += "    " + l + ": \"\"\n"
	}
	text += fmt.Sprintf("status:\n  addresses:\n  - {type: Hostname, address: %s}\n  - {type: InternalIP, address: %s}\n", name, address)
	return render.File{Name: name + ".yaml", Data: []byte(text)}
}

// Nodes keep the addresses that they have, but for a VIP, which is named.
func TestHardCase47Adopt(t *testing.T) {
	files := append(usual.export("4.18"), nodeObject("worker-0", "172.22.0.30"), nodeObject("worker-1", "192.0.2.7"))
	notes := strings.Join(planned(t, files, adopt.Options{}).Notes, "\n")
	if strings.Contains(notes, "worker-0") || !strings.Contains(notes, `node "worker-1" is listed at 192.0.2.7, which is a VIP`) {
		t.Errorf("noted: %s", notes)
	}
}

// Labelled Nodes are carried over: on bare metal the agent finds them by the operator's rule.
func TestHardCase09Import(t *testing.T) {
	const label = "node.openshift.io/remote-worker"
	for _, s := range []setup{usual, {"vsphere", false, "HighlyAvailable", "4.12"}} {
		p := planned(t, append(s.export("4.18"), nodeObject("worker-0", "172.22.0.30", label), nodeObject("worker-1", "192.0.2.31")), adopt.Options{})
		carried := slices.ContainsFunc(p.Import.Carried, func(f importer.Fact) bool { return f.What == "remote workers" && f.Value == "worker-0" })
		lost := slices.ContainsFunc(p.Import.Lost, func(l importer.Loss) bool { return strings.Contains(l.What, label) && len(l.Places) == 1 })
		if bare := s == usual; carried != bare || lost == bare {
			t.Errorf("%v: carried over %v, lost %v", s, carried, lost)
		}
	}
}
