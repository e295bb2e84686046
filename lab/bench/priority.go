package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/templates/manifest"
)

// priority returns a node's priority for the primary VIP of a group; 0 if it takes no part, or if
// it is not known yet.
func (s *subject) priority(n *lab.Node, g *v1alpha1.Group) (int, error) {
	if s.Reference {
		return dumpedPriority(n, g.Instance+"_0"), nil
	}
	k, err := lab.Published[state.Keepalived](n)
	if err != nil || k == nil || k.PID == 0 {
		return 0, err
	}
	for _, i := range k.Instances {
		if i.VIP == g.VIPs[0] && !i.Fault {
			return i.Priority, nil
		}
	}
	return 0, nil
}

// dumpFile is the file, in its container, to which keepalived writes its state on SIGUSR1
// (keepalived(8)).
const dumpFile = "/tmp/keepalived.data"

// dumpedPriority returns the effective priority of an instance from keepalived's last dump, and
// requests another one, which the next call reads. A container that starts or ends has no dump.
func dumpedPriority(n *lab.Node, instance string) int {
	c, err := n.Kubelet.Container(manifest.Keepalived, "keepalived")
	if err != nil {
		return 0
	}
	running, err := c.Running()
	if err != nil {
		return 0
	}
	list, err := running.Processes()
	if err != nil || len(list) == 0 {
		return 0
	}
	path := fmt.Sprintf("/proc/%d/root%s", list[0].PID, dumpFile)
	text, _ := os.ReadFile(path)
	os.Remove(path)
	_, _ = running.KillProcess("keepalived", unix.SIGUSR1)
	return effective(string(text), instance)
}

// effective returns the effective priority of an instance in a dump; 0 if it is in state FAULT or
// missing.
func effective(dump, instance string) int {
	_, block, _ := strings.Cut(dump, " VRRP Instance = "+instance+"\n")
	block, _, _ = strings.Cut(block, " VRRP Instance = ")
	priority := 0
	for line := range strings.Lines(block) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		switch {
		case !ok:
		case key == "State" && value == "FAULT":
			return 0
		case key == "Effective priority":
			priority, _ = strconv.Atoi(value)
		}
	}
	return priority
}
