package daemon

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Avahi is the real avahi with its own message bus: an independent Multicast DNS responder.
type Avahi struct {
	*Process
	host *Host
}

const avahiConf = `[server]
host-name=%s
use-ipv4=yes
use-ipv6=%s
[publish]
publish-workstation=yes
[wide-area]
enable-wide-area=no
`

// StartAvahi runs avahi on the node, with the given host name.
func StartAvahi(t testing.TB, node *netns.Node, name string, ipv6 bool) *Avahi {
	t.Helper()
	yes := "no"
	if ipv6 {
		yes = "yes"
	}
	host := NewHost(t, node)
	for _, dir := range []string{"/run/dbus", "/run/avahi-daemon"} {
		host.sandbox.mkdir(t, dir)
	}
	host.Write("/etc/avahi.conf", fmt.Appendf(nil, avahiConf, name, yes))
	host.Start(nil, "dbus-daemon", "--system", "--nofork", "--nopidfile")
	host.awaitSocket("/run/dbus/system_bus_socket")
	avahi := host.Start(nil, "avahi-daemon", "--no-drop-root", "--no-chroot", "--no-rlimits", "--file=/etc/avahi.conf")
	host.awaitSocket("/run/avahi-daemon/socket")
	return &Avahi{avahi, host}
}

// awaitSocket waits until a program listens at the path.
func (h *Host) awaitSocket(path string) {
	h.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(h.Path(path)); err == nil && info.Mode()&os.ModeSocket != 0 {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("no program listens at %s of %s", path, h.Name)
		}
	}
}

// Resolves returns avahi's address of <host>.local in a family, "-4" or "-6"; "" if it has
// none, which takes it five seconds to determine.
func (a *Avahi) Resolves(family, host string) string {
	out, err := a.host.Run(nil, "avahi-resolve", family, "-n", host+".local")
	fields := strings.Fields(out)
	if err != nil || len(fields) != 2 || fields[0] != host+".local" {
		return ""
	}
	return fields[1]
}

// Browses returns the instances of the workstation service in avahi's cache, in the format of
// avahi-browse --parsable: it waits for no query. Additional flags of avahi-browse may be
// given.
func (a *Avahi) Browses(flags ...string) string {
	out, err := a.host.Run(nil, append([]string{"avahi-browse", "--parsable", "--terminate", "_workstation._tcp"}, flags...)...)
	if err != nil {
		a.t.Logf("avahi-browse: %v: %s", err, out)
	}
	return out
}
