package mdns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/lab/netns"
)

// avahi is the real one, with a message bus of its own: the responder that
// nobody here wrote.
type avahi struct {
	t      *testing.T
	node   *netns.Node
	holder *exec.Cmd // of the mount namespace
	daemon *exec.Cmd
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

// startAvahi runs avahi in the node, as the host of that name.
func startAvahi(t *testing.T, node *netns.Node, host string, ipv6 bool) *avahi {
	t.Helper()
	for _, program := range []string{"avahi-daemon", "avahi-resolve", "avahi-browse", "dbus-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v; `make setup` installs it", err)
		}
	}
	yes := "no"
	if ipv6 {
		yes = "yes"
	}
	conf := filepath.Join(t.TempDir(), "avahi-daemon.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, avahiConf, host, yes), 0o644); err != nil {
		t.Fatal(err)
	}

	a := &avahi{t: t, node: node}
	const hold = "mount -t tmpfs run /run && mkdir /run/dbus /run/avahi-daemon && touch /run/ready && exec sleep infinity"
	a.holder = node.Command(context.Background(), "unshare", "--mount", "sh", "-c", hold)
	a.keep(a.holder)
	until(t, "the mount namespace", func() bool { return a.tool("test", "-e", "/run/ready").Run() == nil })
	a.keep(a.tool("dbus-daemon", "--system", "--nofork", "--nopidfile"))
	until(t, "the message bus", func() bool { return a.tool("test", "-S", "/run/dbus/system_bus_socket").Run() == nil })
	a.daemon = a.tool("avahi-daemon", "--no-drop-root", "--no-chroot", "--no-rlimits", "--file="+conf)
	a.keep(a.daemon)
	until(t, "avahi", func() bool { return a.tool("test", "-S", "/run/avahi-daemon/socket").Run() == nil })
	return a
}

// keep runs a command for as long as the test.
func (a *avahi) keep(cmd *exec.Cmd) {
	a.t.Helper()
	log, err := os.Create(filepath.Join(a.t.TempDir(), "log"))
	if err != nil {
		a.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if output, _ := os.ReadFile(log.Name()); a.t.Failed() && len(output) > 0 {
			a.t.Logf("%v in %s:\n%s", cmd.Args[slices.Index(cmd.Args, "--")+1:], a.node.Name, output)
		}
		log.Close()
	})
}

// tool returns a command that runs beside avahi.
func (a *avahi) tool(name string, args ...string) *exec.Cmd {
	mount := "--mount=/proc/" + strconv.Itoa(a.holder.Process.Pid) + "/ns/mnt"
	return a.node.Command(context.Background(), "nsenter", slices.Concat([]string{mount, "--", name}, args)...)
}

// resolves returns the address that avahi has for a host; "" if it has none,
// which takes it five seconds to find.
func (a *avahi) resolves(family, host string) string {
	a.t.Helper()
	out, err := a.tool("avahi-resolve", family, "-n", host+".local").CombinedOutput()
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(out))
	if len(fields) == 2 && fields[0] == host+".local" {
		return fields[1]
	}
	return ""
}

// browses returns the instances of the workstation service that are in avahi's
// cache: it sends no question for it that it waits for.
func (a *avahi) browses() string {
	a.t.Helper()
	out, err := a.tool("avahi-browse", "--parsable", "--terminate", "_workstation._tcp").Output()
	if err != nil {
		a.t.Logf("avahi-browse: %v", err)
	}
	return string(out)
}

func TestAvahiResolvesTheNode(t *testing.T) {
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32")
	peer := startAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "peer", true)
	publisher := l.publish(node, "master-0", addrs("192.0.2.1", "2001:db8::1"))
	until(t, "the publisher", publisher.published)

	until(t, "IPv4", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "IPv6", func() bool { return peer.resolves("-6", "master-0") == "2001:db8::1" })
	until(t, "the service", func() bool { return strings.Contains(peer.browses(), ";master-0;") })
	resolved := func() string {
		out, _ := peer.tool("avahi-browse", "--parsable", "--terminate", "--resolve", "_workstation._tcp").Output()
		return string(out)
	}
	until(t, "the service's address", func() bool {
		return strings.Contains(resolved(), ";master-0.local;192.0.2.1;9;")
	})

	took := until(t, "goodbye", func() bool {
		publisher.end(syscall.SIGTERM)
		return !strings.Contains(peer.browses(), ";master-0;")
	})
	t.Logf("avahi forgot the service %v after SIGTERM", took)
	for _, family := range []string{"-4", "-6"} {
		if got := peer.resolves(family, "master-0"); got != "" {
			t.Errorf("after goodbye avahi still has %s", got)
		}
	}
	if !publisher.cmd.ProcessState.Success() {
		t.Errorf("ended with %v", publisher.cmd.ProcessState)
	}
}

func TestHardCase15AvahiFollowsAChangeOfAddress(t *testing.T) {
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	peer := startAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "peer", true)
	publisher := l.publish(node, "master-0", addrs("192.0.2.1", "2001:db8::1"))
	until(t, "IPv4", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "IPv6", func() bool { return peer.resolves("-6", "master-0") == "2001:db8::1" })

	l.ip(node, "address", "add", "192.0.2.7/24", "dev", "eth0")
	publisher.tell(addrs("192.0.2.7", "2001:db8::1"))
	until(t, "the new address", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.7" })
	until(t, "IPv6", func() bool { return peer.resolves("-6", "master-0") == "2001:db8::1" })

	// The address moves to a bridge above the link, as when a network plugin
	// takes over.
	l.ip(node, "link", "add", "br-ex", "type", "bridge")
	l.ip(node, "link", "set", "eth0", "master", "br-ex")
	l.ip(node, "address", "flush", "dev", "eth0", "scope", "global")
	l.ip(node, "link", "set", "br-ex", "up")
	l.ip(node, "address", "add", "192.0.2.8/24", "dev", "br-ex")
	publisher.tell(addrs("192.0.2.8", "2001:db8::1"))
	until(t, "the new link", func() bool { return publisher.now().Link == "br-ex" && publisher.published() })
	until(t, "the address there", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.8" })
}

func TestWeResolveAvahi(t *testing.T) {
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	other := l.add("peer", "192.0.2.2/24", "2001:db8::2/64")
	peer := startAvahi(t, other, "peer", true)
	resolver := l.resolve(node, addrs("192.0.2.1"))
	until(t, "avahi's host", func() bool { return resolver.knows("peer", addrs("192.0.2.2", "2001:db8::2")...) })
	l.ip(other, "address", "del", "192.0.2.2/24", "dev", "eth0")
	l.ip(other, "address", "add", "192.0.2.3/24", "dev", "eth0")
	until(t, "avahi's new address", func() bool { return resolver.knows("peer", addrs("192.0.2.3", "2001:db8::2")...) })
	peer.daemon.Process.Signal(syscall.SIGTERM)
	until(t, "avahi's goodbye", func() bool { return resolver.knows("peer") })
}

func TestConflictWithAvahiIsReported(t *testing.T) {
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	peer := startAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "master-0", true)
	until(t, "avahi's own name", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.2" })

	publisher := l.publish(node, "master-0", addrs("192.0.2.1", "2001:db8::1"))
	until(t, "the conflict", func() bool { return publisher.now().Conflict != nil })
	got := publisher.now()
	t.Log(got.Err)
	if got.Published || got.Conflict.Name != "master-0.local" || !strings.HasPrefix(got.Conflict.Theirs, "master-0.local. 120 IN A") {
		t.Errorf("state %+v", got)
	}
	if out := peer.browses(); strings.Contains(out, ";192.0.2.1;") || strings.Contains(out, "master-0-2") {
		t.Errorf("something was published all the same, or renamed:\n%s", out)
	}
	if got := peer.resolves("-4", "master-0"); got != "192.0.2.2" {
		t.Errorf("avahi resolves its own name to %q", got)
	}
	peer.daemon.Process.Kill()
	took := until(t, "the name to be free", publisher.published)
	t.Logf("published %v after avahi was killed", took)
}

func TestAvahiGivesWay(t *testing.T) {
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24")
	publisher := l.publish(node, "master-0", addrs("192.0.2.1"))
	until(t, "the publisher", publisher.published)
	peer := startAvahi(t, l.add("peer", "192.0.2.2/24"), "master-0", true)
	until(t, "avahi's other name", func() bool { return peer.resolves("-4", "master-0-2") == "192.0.2.2" })
	if got := peer.resolves("-4", "master-0"); got != "192.0.2.1" {
		t.Errorf("avahi resolves the node's name to %q", got)
	}
	if !publisher.published() || publisher.now().Conflict != nil {
		t.Errorf("state %+v", publisher.now())
	}
}

func TestHardCase25AvahiWithoutIPv6(t *testing.T) {
	l := newLab(t)
	node, other := l.add("node", "192.0.2.1/24"), l.add("peer", "192.0.2.2/24")
	l.withoutIPv6(node)
	peer := startAvahi(t, other, "peer", true)
	publisher := l.publish(node, "master-0", addrs("192.0.2.1", "2001:db8::1"))
	resolver := l.resolve(node, addrs("192.0.2.1"))
	until(t, "our name", func() bool { return peer.resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "avahi's name", func() bool { return resolver.knows("peer", addrs("192.0.2.2")...) })
	if got := publisher.now(); got.Err != "" || !slices.Equal(got.Addresses, addrs("192.0.2.1")) {
		t.Errorf("state %+v", got)
	}
}
