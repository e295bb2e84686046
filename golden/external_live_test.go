package golden

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/authority"
	"github.com/vipgen/vipgen/lab/listen"
	"github.com/vipgen/vipgen/lab/netns"
	"github.com/vipgen/vipgen/lab/probe"
	"github.com/vipgen/vipgen/lab/process"
)

// The pair of the case pair-dual-stack, on one network with the cluster and with
// clients. The cluster's hosts are stand-ins: what answers is this test's.
type outside struct {
	t       *testing.T
	network *netns.Network
	masters []*netns.Node
	apis    map[string]*standIn
	configs map[string]*standIn
	routers map[string]*standIn
	hosts   map[string]*balancer
	// inside is a client in the machine networks, beyond one that is not.
	inside, beyond *netns.Node
}

// balancer is a host of the pair.
type balancer struct {
	*daemon.Host
	proxy, keepalived *daemon.Process
	units             map[string]unitCommand
}

// The addresses of the case.
const (
	apiVIP, apiVIP6         = "192.0.2.250", "2001:db8::250"
	ingressVIP, ingressVIP6 = "192.0.2.249", "2001:db8::249"
	blueVIP, blueVIP6       = "192.0.2.248", "2001:db8::248"
)

// startOutside starts a cluster and its load balancers.
func startOutside(t *testing.T, proxy string) *outside {
	t.Helper()
	o := newOutside(t)
	for i := range 3 {
		o.startMaster(i)
	}
	o.balance(proxy, "--bootstrap-gone")
	return o
}

// newOutside makes a cluster without a control plane, and clients.
func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{t: t, network: daemon.NewNetwork(t), apis: map[string]*standIn{}, configs: map[string]*standIn{}, routers: map[string]*standIn{}, hosts: map[string]*balancer{}}
	for i := range 3 {
		o.masters = append(o.masters, o.node(fmt.Sprintf("master-%d", i), 10+i))
	}
	for name, health := range map[string]int{"worker-0": 1936, "worker-1": 1936, "infra-0": 1937, "infra-1": 1937} {
		last := map[string]int{"worker-0": 20, "worker-1": 21, "infra-0": 30, "infra-1": 31}[name]
		node := o.node(name, last)
		o.serve(node, health, false, "/healthz/ready")
		o.serve(node, 80, false, "")
		o.routers[name] = o.serve(node, 443, true, "")
	}
	o.inside = o.node("inside", 100)
	o.beyond = daemon.AddNode(t, o.network, "beyond", "198.51.100.9/24", "2001:db8:1::9/64")
	o.route(o.beyond, "192.0.2.0/24", "2001:db8::/64")
	return o
}

// startMaster starts what a control-plane node serves.
func (o *outside) startMaster(i int) { o.startControl(o.masters[i]) }

func (o *outside) startControl(node *netns.Node) {
	o.t.Helper()
	o.apis[node.Name] = o.serve(node, 6443, true, "/readyz")
	o.configs[node.Name] = o.serve(node, 22623, true, "/healthz")
}

// balance starts the pair. What its hosts run comes from the Ignition configs,
// written by the real Ignition and run as the units say.
func (o *outside) balance(proxy string, flags ...string) {
	t := o.t
	t.Helper()
	for i, config := range pairConfigs(t, proxy, flags...) {
		name := fmt.Sprintf("lb-%d", i)
		node := o.node(name, 251+i)
		o.route(node, "198.51.100.0/24", "2001:db8:1::/64")
		b := &balancer{Host: daemon.NewHost(t, node), units: map[string]unitCommand{}}
		root := daemon.Ignition(t, config)
		for p, data := range readTree(t, root) {
			if strings.HasSuffix(p, ".service") {
				u := readUnit(t, string(data))
				b.units[u.program] = u
				continue
			}
			b.Write("/"+p, data)
		}
		if proxy == "nginx" {
			b.PrepareNginx()
		}
		o.hosts[name] = b
		b.proxy = b.run(proxy)
		b.keepalived = b.run("keepalived")
	}
}

// pairConfigs are the Ignition configs of the pair.
func pairConfigs(t *testing.T, proxy string, more ...string) [][]byte {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"external-lb", "render", "external/pair-dual-stack/install-config.yaml"}, readFlags(t, "external/pair-dual-stack/flags")...)
	args = append(append(args, more...), "--interface", netns.DefaultLink, "--proxy", proxy,
		"--nginx-image", "registry.example.com/nginx:1.28", "--format", "ignition", "-o", dir)
	vipgen(t, args...)
	all := readTree(t, dir)
	return [][]byte{all["ignition/lb-0.ign"], all["ignition/lb-1.ign"]}
}

// unitCommand is what a unit has podman run.
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
	// As systemd splits it, as far as the units go.
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
		if out, err := node.Command(o.t.Context(), "ip", "route", "add", n, "dev", netns.DefaultLink).CombinedOutput(); err != nil {
			o.t.Fatalf("%v: %s", err, out)
		}
	}
}

// standIn answers requests with the name of its node.
type standIn struct {
	listener *listen.Listener
	server   *http.Server
	// draining has it say that it is not ready, while it goes on answering.
	draining atomic.Bool
}

// serve answers at a port of a node: 200 at the path of its health, the node's name
// everywhere else.
func (o *outside) serve(node *netns.Node, port int, secure bool, health string) *standIn {
	o.t.Helper()
	l, err := listen.All(node, port)
	if err != nil {
		o.t.Fatal(err)
	}
	s := &standIn{listener: l}
	s.server = &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: new(http.Protocols),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == health && s.draining.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, node.Name)
		})}
	s.server.Protocols.SetHTTP1(true)
	if secure {
		ca, err := authority.New(node.Name + "-signer")
		if err != nil {
			o.t.Fatal(err)
		}
		pair, err := ca.Serving(node.Name)
		if err != nil {
			o.t.Fatal(err)
		}
		cert, err := pair.TLS()
		if err != nil {
			o.t.Fatal(err)
		}
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		go s.server.ServeTLS(l, "", "")
	} else {
		go s.server.Serve(l)
	}
	o.t.Cleanup(s.kill)
	return s
}

func (s *standIn) kill() {
	s.listener.Kill()
	s.server.Close()
}

// get asks once over a connection of its own and returns who answered.
func get(from *netns.Node, scheme, address string, port int, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(address, fmt.Sprint(port)), path), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err == nil && resp.TLS != nil && resp.TLS.PeerCertificates[0].Subject.CommonName != string(body) {
		err = fmt.Errorf("a certificate of %s, from %s: TLS was not passed through", resp.TLS.PeerCertificates[0].Subject.CommonName, body)
	}
	return string(body), err
}

// await waits for a condition.
func (o *outside) await(what string, ok func() bool) {
	o.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			o.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// holders are the hosts of the pair with an address.
func (o *outside) holders(vip string) []string {
	o.t.Helper()
	var out []string
	for _, name := range []string{"lb-0", "lb-1"} {
		addresses, err := o.hosts[name].Addresses()
		if err != nil {
			o.t.Fatal(err)
		}
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
	all := []string{apiVIP, apiVIP6, ingressVIP, ingressVIP6, blueVIP, blueVIP6}
	o.await("one host to hold all VIPs", func() bool {
		first := o.holders(all[0])
		if len(first) != 1 {
			return false
		}
		holder = first[0]
		return !slices.ContainsFunc(all, func(vip string) bool { return !slices.Equal(o.holders(vip), first) })
	})
	o.await(fmt.Sprintf("answers from %v alone", apis), func() bool {
		seen := map[string]bool{}
		for range 3 * len(apis) {
			who, err := get(o.inside, "https", apiVIP, 6443, "/version")
			if err != nil || !slices.Contains(apis, who) {
				return false
			}
			seen[who] = true
		}
		return len(seen) == len(apis)
	})
	return holder
}

var allAPIs = []string{"master-0", "master-1", "master-2"}

// TestExternalTraffic sends traffic through pairs with either proxy.
func TestExternalTraffic(t *testing.T) {
	for _, proxy := range []string{"haproxy", "nginx"} {
		t.Run(proxy, func(t *testing.T) {
			o := startOutside(t, proxy)
			o.serving(allAPIs...)
			o.reaches()
			o.keepsOut()
			// nginx learns of the death of a server by connections that fail.
			o.apis["master-1"].kill()
			o.serving("master-0", "master-2")
			if proxy == "haproxy" {
				o.apis["master-2"].draining.Store(true)
				o.serving("master-0")
			}
		})
	}
}

// reaches: every service at every VIP is the right hosts', for clients in the
// machine networks and beyond.
func (o *outside) reaches() {
	o.t.Helper()
	workers, infra := []string{"worker-0", "worker-1"}, []string{"infra-0", "infra-1"}
	tests := []struct {
		scheme, vip string
		port        int
		want        []string
	}{
		{"https", apiVIP, 6443, allAPIs},
		{"https", apiVIP6, 6443, allAPIs},
		{"https", ingressVIP, 443, workers},
		{"https", ingressVIP6, 443, workers},
		{"http", ingressVIP, 80, workers},
		{"http", ingressVIP6, 80, workers},
		{"https", blueVIP, 443, infra},
		{"https", blueVIP6, 443, infra},
		{"http", blueVIP, 80, infra},
		{"http", blueVIP6, 80, infra},
	}
	for _, client := range []*netns.Node{o.inside, o.beyond} {
		for _, tt := range tests {
			var who string
			var err error
			o.await(fmt.Sprintf("%s to get an answer from %s:%d", client.Name, tt.vip, tt.port), func() bool {
				who, err = get(client, tt.scheme, tt.vip, tt.port, "/")
				return err == nil
			})
			if !slices.Contains(tt.want, who) {
				o.t.Errorf("%s at %s:%d: answered by %s, want one of %v", client.Name, tt.vip, tt.port, who, tt.want)
			}
		}
	}
}

// keepsOut: machine configs are for clients in the machine networks. Others get not
// a byte.
func (o *outside) keepsOut() {
	o.t.Helper()
	for _, vip := range []string{apiVIP, apiVIP6} {
		o.await("a machine config", func() bool {
			who, err := get(o.inside, "https", vip, 22623, "/config/worker")
			return err == nil && slices.Contains(allAPIs, who)
		})
		o.await("a byte from port 22623", func() bool { return o.greeted(o.inside, vip) > 0 })
		if n := o.greeted(o.beyond, vip); n != 0 {
			o.t.Errorf("a client beyond the machine networks at %s:22623: %d bytes", vip, n)
		}
		if who, err := get(o.beyond, "https", vip, 22623, "/config/worker"); err == nil {
			o.t.Errorf("a client beyond the machine networks got a machine config of %s", who)
		}
	}
}

// greeted says how many bytes a client gets from port 22623 when it begins with TLS.
func (o *outside) greeted(client *netns.Node, vip string) int {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	raw, err := client.DialContext(ctx, "tcp", net.JoinHostPort(vip, "22623"))
	if err != nil {
		return 0 // not even a connection
	}
	defer raw.Close()
	conn := &counted{Conn: raw}
	if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx); err != nil && ctx.Err() != nil {
		o.t.Errorf("%s at %s:22623: neither an answer nor an end", client.Name, vip)
	}
	return conn.read
}

// counted counts what is read of a connection.
type counted struct {
	net.Conn
	read int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read += n
	return n, err
}

// TestExternalFailover takes hosts of the pair away under the load of a client that
// asks every 10 ms over a new connection.
func TestExternalFailover(t *testing.T) {
	o := startOutside(t, "haproxy")
	first := o.serving(allAPIs...)
	second := map[string]string{"lb-0": "lb-1", "lb-1": "lb-0"}[first]
	o.await("the other host to be able to serve", func() bool {
		out, err := o.hosts[second].Run(nil, "curl", "--silent", "--fail", "http://127.0.0.1:9444/ready")
		return err == nil && out != ""
	})
	client, err := probe.Start(probe.Config{Target: probe.Target{URL: "https://" + net.JoinHostPort(apiVIP, "6443") + "/version", Dial: o.inside.DialContext}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.End() })
	settled := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := client.Await(ctx, 50); err != nil {
			t.Fatal(err)
		}
	}
	settled()

	t.Log("HAProxy dies on " + first)
	o.hosts[first].proxy.Kill()
	o.await("the VIPs at "+second, func() bool { return slices.Equal(o.holders(apiVIP), []string{second}) })
	settled()

	t.Log("it is back, and takes nothing away")
	o.hosts[first].proxy = o.hosts[first].run("haproxy")
	o.await("HAProxy on "+first+" to be ready", func() bool {
		_, err := o.hosts[first].Run(nil, "curl", "--silent", "--fail", "http://127.0.0.1:9444/ready")
		return err == nil
	})
	settled()
	if got := o.holders(apiVIP); !slices.Equal(got, []string{second}) {
		t.Errorf("the VIP is at %v, want it to stay at %s", got, second)
	}

	t.Log(second + " loses its power")
	if err := o.hosts[second].SetLink(false); err != nil {
		t.Fatal(err)
	}
	if err := o.hosts[second].Kill(); err != nil {
		t.Fatal(err)
	}
	o.await("the VIPs at "+first, func() bool {
		return slices.Contains(o.holders(apiVIP), first) && slices.Contains(o.holders(apiVIP6), first)
	})
	settled()
	result := client.End()
	for _, s := range result.Spells() {
		if !s.OK {
			t.Logf("%d requests lost in a row, over %v", s.Requests, (s.To - s.From).Round(time.Millisecond))
		}
	}
	t.Logf("%d requests, %d lost, longest outage %v", len(result.Requests), result.Lost(), result.Outage().Round(time.Millisecond))
	if len(result.Requests) == 0 || result.Lost() == len(result.Requests) {
		t.Error("the client measured nothing")
	}
}

// TestExternalInstallation: API and machine configs come from the bootstrap host
// first, then from the control plane, through the same haproxy.cfg, and a client that
// waits for the API in between gets an answer to every question from the first answer
// on (seed 001).
func TestExternalInstallation(t *testing.T) {
	o := newOutside(t)
	bootstrap := o.node("bootstrap", 9)
	o.startControl(bootstrap)
	o.balance("haproxy")
	o.serving("bootstrap")
	client, err := probe.Start(probe.Config{Target: probe.Target{URL: "https://" + net.JoinHostPort(apiVIP, "6443") + "/version", Timeout: time.Minute, Dial: o.inside.DialContext}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.End() })
	config := func(want ...string) {
		t.Helper()
		o.await(fmt.Sprintf("machine configs of %v", want), func() bool {
			who, err := get(o.inside, "https", apiVIP, 22623, "/config/master")
			return err == nil && slices.Contains(want, who)
		})
	}
	config("bootstrap")
	for i := range o.masters {
		o.startMaster(i)
	}
	o.serving("bootstrap", "master-0", "master-1", "master-2")
	// The bootstrap's API server says that it goes, and does so later.
	o.apis["bootstrap"].draining.Store(true)
	o.serving(allAPIs...)
	o.apis["bootstrap"].kill()
	o.configs["bootstrap"].kill()
	o.serving(allAPIs...)
	config(allAPIs...)
	if r := client.End(); r.Lost() > 0 || len(r.Requests) == 0 {
		t.Errorf("%d of %d requests lost: %+v", r.Lost(), len(r.Requests), r.Spells())
	}
}

// TestExternalReload: HAProxy reads another configuration without losing a
// connection, as `systemctl reload` and the unit's ExecReload have it do.
func TestExternalReload(t *testing.T) {
	o := startOutside(t, "haproxy")
	holder := o.hosts[o.serving(allAPIs...)]
	client, err := probe.Start(probe.Config{Target: probe.Target{URL: "https://" + net.JoinHostPort(apiVIP, "6443") + "/version", Timeout: time.Minute, Dial: o.inside.DialContext}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.End() })
	const file = "/etc/haproxy/haproxy.cfg"
	with := readFile(t, holder.Path(file))
	without := regexp.MustCompile(`(?m)^    server master-1 .*\n`).ReplaceAll(with, nil)
	loaded := func() int { return strings.Count(holder.proxy.Output(), "Loading success.") }
	for i := range 6 {
		before := loaded()
		holder.Write(file, [][]byte{without, with}[i%2])
		holder.proxy.Signal(syscall.SIGUSR2)
		o.await("another worker", func() bool { return loaded() > before })
		o.serving([][]string{{"master-0", "master-2"}, allAPIs}[i%2]...)
	}
	if r := client.End(); r.Lost() > 0 || len(r.Requests) == 0 {
		t.Errorf("%d of %d requests lost: %+v", r.Lost(), len(r.Requests), r.Spells())
	}
}

// TestExternalDropsRights: the plain haproxy.cfg, which is the one that Ignition
// writes but for the user, drops root's rights after it bound the ports.
func TestExternalDropsRights(t *testing.T) {
	h := daemon.NewHost(t, daemon.AddNode(t, daemon.NewNetwork(t), "lb", "192.0.2.251/24"))
	h.Write("/etc/haproxy/haproxy.cfg", readFile(t, filepath.Join("external", "one-host", "expected", "haproxy", "every-host", "etc", "haproxy", "haproxy.cfg")))
	p := h.Start(nil, "haproxy", "-W", "-db", "-f", "/etc/haproxy/haproxy.cfg")
	deadline := time.Now().Add(2 * time.Minute)
	for !strings.Contains(p.Output(), "Loading success.") {
		if p.Ended() || time.Now().After(deadline) {
			t.Fatalf("HAProxy does not start:\n%s", p.Output())
		}
		time.Sleep(20 * time.Millisecond)
	}
	worker, err := process.Child(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", worker))
	if err != nil {
		t.Fatal(err)
	}
	want, err := user.Lookup("haproxy")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); got != want.Uid {
		t.Errorf("the worker runs as user %s, want haproxy, %s", got, want.Uid)
	}
}
