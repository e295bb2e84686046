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
	"github.com/vipgen/vipgen/templates/pod"
)

// priority is that of a node for the primary VIP of a group; 0 where it takes no
// part, or is not known yet.
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

// dumpFile is where keepalived writes what it knows when it gets SIGUSR1
// (keepalived(8)), in its container.
const dumpFile = "/tmp/keepalived.data"

// dumpedPriority is the effective priority of an instance in keepalived's last
// dump, and asks for another one. The dump is looked at by the next call: a
// container that starts, or ends, has none.
func dumpedPriority(n *lab.Node, instance string) int {
	c, err := n.Kubelet.Container(pod.Keepalived, "keepalived")
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

// effective reads the effective priority of an instance from a dump; 0 if it is in
// state FAULT or not there.
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
