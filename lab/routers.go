package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/companion/network"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

// Router is a router that speaks BGP: Debian's FRR or BIRD. Its routes between racks are static,
// so that VIPs alone depend on BGP.
type Router struct {
	*netns.Node
	Address netip.Addr
	// Daemons are its daemons, in the order of their start.
	Daemons []string

	dir     string
	table   *netlink.Handle
	running map[string]*process.Process
}

// Routers are the routers of [Racks]: those of the racks, the core that knows the client, and a
// hostile peer of the nodes of the first rack.
type Routers struct {
	Racks         []*Router
	Core, Hostile *Router
}

// All returns all routers.
func (r *Routers) All() []*Router {
	if r == nil {
		return nil
	}
	return append([]*Router{r.Core}, append(slices.Clone(r.Racks), r.Hostile)...)
}

var (
	frrDaemons  = []string{"zebra", "bfdd", "bgpd"}
	birdDaemons = []string{"bird"}
)

// AddRouters starts the routers of the lab of Racks.
func (c *Cluster) AddRouters(ctx context.Context) (*Routers, error) {
	for _, program := range []string{"/usr/lib/frr/bgpd", "/usr/bin/vtysh", "/usr/sbin/bird"} {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("%w: on Debian, apt-get install frr bird2", err)
		}
	}
	out := &Routers{}
	var err error
	add := func(name string, daemons []string, conf string, routes [][2]string, addrs ...netip.Prefix) *Router {
		if err != nil {
			return nil
		}
		var r *Router
		r, err = c.addRouter(ctx, name, daemons, conf, routes, addrs...)
		return r
	}
	a, b := &racks[0], &racks[1]
	out.Core = add("core", frrDaemons, coreConf, [][2]string{{a.network.String(), a.up.Addr().String()}, {b.network.String(), b.up.Addr().String()}},
		coreClients, a.core, b.core)
	for i, daemons := range [][]string{frrDaemons, birdDaemons} {
		conf, e := c.rackConf(i, daemons)
		err = errors.Join(err, e)
		out.Racks = append(out.Racks, add(racks[i].name, daemons, conf, [][2]string{{"default", racks[i].core.Addr().String()}}, racks[i].router, racks[i].up))
	}
	out.Hostile = add("hostile-router", birdDaemons, hostileConf(append(c.VIPs(v1alpha1.GroupAPI), c.VIPs(v1alpha1.GroupIngress)...)), nil, hostilePeer)
	return out, err
}

// rackConf returns the configuration of a rack's router: what vipgen prints for it, the addresses of
// the nodes, and the session with the core.
func (c *Cluster) rackConf(i int, daemons []string) (string, error) {
	r := &racks[i]
	list, err := network.Routers(c.Rendered(), r.router.Addr().String())
	if err != nil {
		return "", err
	}
	if slices.Equal(daemons, birdDaemons) {
		conf, err := list[0].Conf("bird")
		return fmt.Sprintf("router id %v;\nprotocol device {}\n%s", r.router.Addr(), conf) +
			fmt.Sprintf(birdToCore, r.up.Addr(), list[0].ASN, r.core.Addr(), coreASN), err
	}
	conf, err := list[0].Conf("frr")
	text := fmt.Sprintf("frr defaults datacenter\n%srouter bgp %d\n", conf, list[0].ASN)
	for _, n := range c.Nodes() {
		if r.network.Contains(n.Address()) {
			text += fmt.Sprintf(" neighbor %v peer-group vipgen\n", n.Address())
		}
	}
	return text + fmt.Sprintf(frrToCore, r.core.Addr(), coreASN), err
}

const (
	coreASN   = 64700
	frrToCore = ` no bgp ebgp-requires-policy
 neighbor %[1]v remote-as %[2]d
 neighbor %[1]v bfd profile vipgen
 neighbor %[1]v timers connect 1
`
	birdToCore = `protocol bgp core { local %v as %d; neighbor %v as %d; bfd on; connect retry time 1; error wait time 1, 2;
  ipv4 { next hop self; import none; export where source = RTS_BGP; }; }
`
	coreConf = `frr defaults datacenter
router bgp 64700
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 neighbor racks peer-group
 neighbor racks remote-as external
 neighbor racks bfd profile fast
 neighbor racks timers connect 1
 neighbor 10.255.1.1 peer-group racks
 neighbor 10.255.2.1 peer-group racks
 address-family ipv4 unicast
  maximum-paths 8
 exit-address-family
bfd
 profile fast
  receive-interval 50
  transmit-interval 50
`
)

// Floods of the hostile peer, by the names of BIRD's protocols.
const (
	// FloodVIPs are the VIPs themselves, a default route and halves of the nodes' subnets.
	FloodVIPs = "flood_vips"
	// FloodMany are more routes than nodes take from a router (agent/bgp/speaker, maxPrefixes).
	FloodMany = "flood_many"
)

const manyRoutes = 12_000

// hostileConf announces to the nodes of the first rack what is enabled of the floods.
func hostileConf(vips []netip.Addr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "router id %v;\nprotocol device {}\nprotocol static %s { disabled; ipv4 {};\n", hostilePeer.Addr(), FloodVIPs)
	for _, vip := range vips {
		fmt.Fprintf(&b, " route %v/%d blackhole;\n", vip, vip.BitLen())
	}
	fmt.Fprint(&b, " route 0.0.0.0/0 blackhole; route 192.0.2.0/27 blackhole; route 192.0.2.64/27 blackhole;\n")
	fmt.Fprintf(&b, "}\nprotocol static %s { disabled; ipv4 {};\n", FloodMany)
	for i := range manyRoutes {
		fmt.Fprintf(&b, " route 10.%d.%d.0/24 blackhole;\n", i/256, i%256)
	}
	fmt.Fprintf(&b, "}\nprotocol bgp { local %v as 64666; neighbor range %v as 64512; dynamic name \"n\"; passive; error wait time 1, 2;\n  ipv4 { import none; export all; }; }\n",
		hostilePeer.Addr(), racks[0].network)
	return b.String()
}

// addRouter starts a router with static routes, destination and gateway of each.
func (c *Cluster) addRouter(ctx context.Context, name string, daemons []string, conf string, routes [][2]string, addrs ...netip.Prefix) (*Router, error) {
	node, err := c.network.AddNode(name, addrs...)
	if err != nil {
		return nil, err
	}
	r := &Router{Node: node, Address: addrs[0].Addr(), Daemons: daemons, dir: RouterDir(node.Namespace()), running: map[string]*process.Process{}}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return nil, err
	}
	c.onClose(r.close)
	if err := r.Do(func() (err error) { r.table, err = netlink.NewHandle(unix.NETLINK_ROUTE); return err }); err != nil {
		return nil, err
	}
	// All are on one link: a redirect would send the client past the core, to one rack alone. And two routers in a row
	// must not choose by the same hash: the core's is by ports and addresses, the others' by the port of the client. Policy 1
	// takes the hash that the client's socket has on the same machine, and which changes when it retransmits.
	fields := "net.ipv4.fib_multipath_hash_fields=16"
	if name == "core" {
		fields = "net.ipv4.fib_multipath_hash_fields=55"
	}
	settings := []string{"net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf." + node.Link + ".send_redirects=0",
		"net.ipv4.fib_multipath_hash_policy=3", fields}
	err = errors.Join(r.run("chown", "frr:", r.dir), os.WriteFile(r.path("conf"), []byte(conf), 0o644), r.run("sysctl", append([]string{"-qw"}, settings...)...))
	for _, to := range routes {
		err = errors.Join(err, r.run("ip", "route", "replace", to[0], "via", to[1]))
	}
	for _, d := range daemons {
		if err == nil {
			err = r.Start(ctx, d)
		}
	}
	return r, err
}

// RouterDir returns the directory of a router's files. FRR's user cannot reach the lab's, and paths of
// sockets are short (unix(7)).
func RouterDir(namespace string) string { return filepath.Join("/run", namespace) }

func (r *Router) path(name string) string { return filepath.Join(r.dir, name) }

func (r *Router) run(command string, args ...string) error {
	out, err := r.Command(context.Background(), command, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", command, r.Name, err, out)
	}
	return nil
}

// startTime is the time limit of the start of a daemon.
const startTime = 30 * time.Second

// Start starts a daemon of the router, with real-time scheduling: a router has nothing else to do.
func (r *Router) Start(ctx context.Context, daemon string) error {
	args, socket := []string{"-r", "1", "bird", "-f", "-c", r.path("conf"), "-s", r.path("bird.vty")}, r.path(daemon+".vty")
	if daemon != "bird" {
		args = []string{"-r", "1", "/usr/lib/frr/" + daemon, "-f", "/dev/null", "-i", r.path(daemon + ".pid"), "-z", r.path("zserv"),
			"--vty_socket", r.dir, "-P", "0", "--log", "stdout"}
		if daemon == "bfdd" {
			args = append(args, "--bfdctl", r.path("bfdd.sock"))
		}
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := process.Start(daemon+" of "+r.Name, r.Command(context.Background(), "chrt", args...), r.path(daemon+".log"))
	if err != nil {
		return err
	}
	r.running[daemon] = p
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return Await(ctx, daemon+" of "+r.Name, func() (bool, error) {
		if p.Ended() {
			return false, fmt.Errorf("%s of %s has ended: %s", daemon, r.Name, p.Output())
		}
		if _, err := os.Stat(socket); err != nil {
			return false, nil
		}
		return daemon == "bird" || r.control("-d", daemon, "-f", r.path("conf")) == nil, nil
	})
}

// KillDaemon kills a daemon, as a crash does.
func (r *Router) KillDaemon(daemon string) {
	if p := r.running[daemon]; p != nil {
		p.Kill()
	}
}

// BIRD reports whether the router runs BIRD.
func (r *Router) BIRD() bool { return slices.Equal(r.Daemons, birdDaemons) }

// Shell returns the command that controls the router, BIRD's or FRR's, without its arguments.
func (r *Router) Shell() []string {
	if r.BIRD() {
		return []string{"birdc", "-s", r.path("bird.vty")}
	}
	return []string{"vtysh", "--vty_socket", r.dir}
}

func (r *Router) control(args ...string) error {
	line := append(r.Shell(), args...)
	return r.run(line[0], line[1:]...)
}

// Control has the router carry out a command, which BIRD and FRR spell differently.
func (r *Router) Control(bird, frr string) error {
	if r.BIRD() {
		return r.control(strings.Fields(bird)...)
	}
	return r.control("-c", frr)
}

// Log returns what the daemons have logged, and the state of BFD.
func (r *Router) Log() string {
	var b strings.Builder
	args := []string{"-d", "bfdd", "-c", "show bfd peers", "-c", "show bfd peers counters"}
	if r.BIRD() {
		args = []string{"show bfd sessions"}
	}
	line := append(r.Shell(), args...)
	out, _ := r.Command(context.Background(), line[0], line[1:]...).CombinedOutput() // it holds the error
	fmt.Fprintf(&b, "--- BFD of %s\n%s\n", r.Name, out)
	for _, d := range r.Daemons {
		fmt.Fprintf(&b, "--- %s of %s\n%s\n", d, r.Name, r.running[d].Output())
	}
	return b.String()
}

func (r *Router) close() error {
	for _, d := range r.Daemons {
		r.KillDaemon(d)
	}
	if r.table != nil {
		r.table.Close()
	}
	return os.RemoveAll(r.dir)
}
