package externallb

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// The pair of the case pair-dual-stack, on one network with the cluster and with clients. The
// cluster's hosts are this test's stand-ins.
type outside struct {
	t       *testing.T
	network *netns.Network
	apis    map[string]*standIn
	hosts   map[string]*balancer
	// inside is a client in the machine networks, beyond one that is not.
	inside, beyond *netns.Node
}

// balancer is a host of the pair, which runs the commands of its units.
type balancer struct {
	*daemon.Host
	proxy *daemon.Process
	units map[string]unitCommand
}

// The addresses of the case.
const (
	apiVIP, apiVIP6         = "192.0.2.250", "2001:db8::250"
	ingressVIP, ingressVIP6 = "192.0.2.249", "2001:db8::249"
	blueVIP, blueVIP6       = "192.0.2.248", "2001:db8::248"
	firstHost               = "192.0.2.251"
	mgmtVIP, mgmtVIP6       = "192.0.2.247", "2001:db8::247"
)

var allVIPs = []string{apiVIP, apiVIP6, ingressVIP, ingressVIP6, blueVIP, blueVIP6, mgmtVIP, mgmtVIP6}

// newCluster makes an installed cluster, and clients.
func newCluster(t *testing.T) *outside {
	t.Helper()
	o := &outside{t: t, network: daemon.NewNetwork(t), apis: map[string]*standIn{}, hosts: map[string]*balancer{}}
	for i := range 3 {
		node := o.node(fmt.Sprintf("master-%d", i), 10+i)
		o.apis[node.Name] = o.serve(node, 6443, true, "/readyz")
		o.serve(node, 22623, true, "/healthz")
	}
	for _, host := range []struct {
		name         string
		last, health int
	}{{"worker-0", 20, 1936}, {"worker-1", 21, 1936}, {"infra-0", 30, 1937}, {"infra-1", 31, 1937}} {
		node := o.node(host.name, host.last)
		o.serve(node, host.health, false, "/healthz/ready")
		o.serve(node, 80, false, "")
		o.serve(node, 443, true, "")
	}
	o.inside = o.node("inside", 100)
	o.beyond = daemon.AddNode(t, o.network, "beyond", "198.51.100.9/24", "2001:db8:1::9/64")
	o.route(o.beyond, "192.0.2.0/24", "2001:db8::/64")
	return o
}

// balance starts the pair, keepalived after the proxies, so that no VIP moves later.
func (o *outside) balance(flags ...string) {
	o.t.Helper()
	for i, config := range pairConfigs(o.t, flags...) {
		b := o.host(i, config)
		b.proxy = b.run("haproxy")
		o.awaitReady(b.Name)
		b.run("keepalived")
	}
}

// host adds a host of the pair, with the files that the real Ignition writes from its config.
func (o *outside) host(i int, config []byte) *balancer {
	o.t.Helper()
	name := fmt.Sprintf("lb-%d", i)
	node := o.node(name, 251+i)
	o.route(node, "198.51.100.0/24", "2001:db8:1::/64")
	b := &balancer{Host: daemon.NewHost(o.t, node), units: map[string]unitCommand{}}
	root := os.DirFS(daemon.Ignition(o.t, config))
	testkit.Must(o.t, fs.WalkDir(root, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, p)
		if strings.HasSuffix(p, ".service") {
			u := readUnit(o.t, string(data))
			b.units[u.program] = u
		} else {
			b.Write("/"+p, data)
		}
		return err
	}))
	o.hosts[name] = b
	return b
}

// pairCase is the golden case of the pair.
const pairCase = "../../golden/external/pair-dual-stack/"

// pairConfigs are the Ignition configs of the pair.
func pairConfigs(t *testing.T, more ...string) [][]byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"external-lb", "render", pairCase + "install-config.yaml"}
	for line := range strings.Lines(string(testkit.ReadFile(t, pairCase+"flags"))) {
		if !strings.HasPrefix(line, "#") {
			args = append(args, strings.Fields(line)...)
		}
	}
	args = append(append(args, more...), "--interface", netns.DefaultLink, "--format", "ignition", "--dir", dir)
	var out, report bytes.Buffer
	if code := cli.Run(args, strings.NewReader(""), &out, &report); code != command.OK {
		t.Fatalf("vipgen %v: exit code %d\n%s", args, code, &report)
	}
	return [][]byte{testkit.ReadFile(t, dir+"/ignition/lb-0.ign"), testkit.ReadFile(t, dir+"/ignition/lb-1.ign")}
}

// unitCommand is the command that a unit has podman run.
type unitCommand struct {
	program      string
	args         []string
	capabilities []string
}

func readUnit(t *testing.T, text string) unitCommand {
	t.Helper()
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/podman run .* --entrypoint (\S+) \S+ (.*)$`).FindStringSubmatch(text)
	if line == nil {
		t.Fatalf("no podman in\n%s", text)
	}
	u := unitCommand{program: line[1]}
	// Split as systemd does, as far as the units need it.
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line[2], -1) {
		u.args = append(u.args, m[1]+m[2])
	}
	for _, m := range regexp.MustCompile(`--cap-add (\S+)`).FindAllStringSubmatch(text, -1) {
		u.capabilities = append(u.capabilities, "+"+strings.ToLower(m[1]))
	}
	return u
}

// run runs the daemon of a unit with the unit's capabilities and no others.
func (b *balancer) run(program string) *daemon.Process {
	u := b.units[program]
	set := "-all," + strings.Join(u.capabilities, ",")
	return b.Start(nil, append([]string{"setpriv", "--bounding-set", set, "--inh-caps", set, "--", u.program}, u.args...)...)
}

// node adds a node with addresses of both families that end with the same number.
func (o *outside) node(name string, last int) *netns.Node {
	o.t.Helper()
	return daemon.AddNode(o.t, o.network, name, fmt.Sprintf("192.0.2.%d/24", last), fmt.Sprintf("2001:db8::%d/64", last))
}

// route makes networks reachable on the link.
func (o *outside) route(node *netns.Node, networks ...string) {
	o.t.Helper()
	for _, n := range networks {
		testkit.Run(o.t, node.Command(o.t.Context(), "ip", "route", "add", n, "dev", netns.DefaultLink))
	}
}

// await waits for a condition.
func (o *outside) await(what string, ok func() bool) {
	o.t.Helper()
	testkit.Await(o.t, what, ok)
}

// during calls f while a client requests the API at an address every 10 ms, each time over a
// new connection, and returns the client's results.
func (o *outside) during(what, address string, timeout time.Duration, do func()) probe.Result {
	o.t.Helper()
	client, err := probe.Start(probe.Config{Target: probe.Target{
		URL: "https://" + net.JoinHostPort(address, "6443") + "/version", Timeout: timeout, Dial: o.inside.DialContext}})
	testkit.Must(o.t, err)
	defer client.End()
	settled := func() {
		o.t.Helper()
		ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
		defer cancel()
		testkit.Must(testkit.In(o.t, what), client.Await(ctx, 50))
	}
	settled()
	do()
	settled()
	r := client.End()
	o.t.Logf("%s: %d of %d requests lost, %v without an answer, the slowest %v (the machine paused for %v)", what, r.Lost(), len(r.Requests),
		r.Outage().Round(time.Millisecond), r.Slowest().Round(time.Millisecond), r.Pause().Round(time.Millisecond))
	return r
}

// awaitReady waits until a host reports that it is ready.
func (o *outside) awaitReady(host string) {
	o.t.Helper()
	o.await(host+" to be ready", func() bool {
		_, err := o.hosts[host].Run(nil, "curl", "--silent", "--fail", "http://127.0.0.1:9444/ready")
		return err == nil
	})
}

// together reports whether a host has all VIPs.
func (o *outside) together(host string) bool {
	o.t.Helper()
	return !slices.ContainsFunc(allVIPs, func(vip string) bool { return !slices.Equal(o.holders(vip), []string{host}) })
}

// awaitVIPs waits until one host has all VIPs.
func (o *outside) awaitVIPs(host string) {
	o.t.Helper()
	o.await("all VIPs at "+host, func() bool { return o.together(host) })
}

// holders returns the hosts of the pair with an address.
func (o *outside) holders(vip string) []string {
	o.t.Helper()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(o.hosts)) {
		addresses, err := o.hosts[name].Addresses()
		testkit.Must(o.t, err)
		if slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Addr() == netip.MustParseAddr(vip) }) {
			out = append(out, name)
		}
	}
	return out
}

// serving waits until one host has all VIPs and clients get answers from the hosts
// of the cluster that are given, and from those alone.
func (o *outside) serving(apis ...string) (holder string) {
	o.t.Helper()
	o.await("one host to hold all VIPs", func() bool {
		for holder = range o.hosts {
			if o.together(holder) {
				return true
			}
		}
		return false
	})
	o.answers(apiVIP, apis...)
	return holder
}

// answers waits until clients get answers at an address from the hosts of the
// cluster that are given, and from those alone.
func (o *outside) answers(address string, apis ...string) {
	o.t.Helper()
	o.await(fmt.Sprintf("answers from %v alone", apis), func() bool { return o.answered(address, apis...) })
}

// answered reports whether clients get answers.
func (o *outside) answered(address string, apis ...string) bool {
	o.t.Helper()
	seen := map[string]bool{}
	for range 3 * len(apis) {
		who, err := get(o.inside, "https", address, 6443, "/version")
		if err != nil || !slices.Contains(apis, who) {
			return false
		}
		seen[who] = true
	}
	return len(seen) == len(apis)
}
