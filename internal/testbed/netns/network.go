package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/vishvananda/netlink"
)

// errNotRoot is returned by New in a process that is not root.
var errNotRoot = errors.New("making network namespaces needs root")

const (
	// DefaultLink is the default name of a node's link.
	DefaultLink = "eth0"

	bridge = "br0"
	// island is the bridge of the nodes that a partition cuts off.
	island = "br1"
	// maxLinkName is the kernel's IFNAMSIZ without the terminating zero byte.
	maxLinkName = 15
)

// nodeName matches node names that are valid file names under /run/netns.
var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// networks numbers the networks of this process.
var networks atomic.Int64

// Network is a bridge and the nodes attached to it. It is not safe for concurrent use; its
// nodes are, each by itself.
type Network struct {
	prefix string // of the names of all its namespaces
	hub    string // the bridge's namespace
	record func(namespace string) error
	made   []string
	nodes  []*Node
	ports  int
}

// New makes a network without nodes. The caller must Close it.
func New() (*Network, error) {
	return NewRecorded(func(string) error { return nil })
}

// NewRecorded is New for callers that must remove the network even if this process is killed:
// record is called with the name of every namespace before it is made, and an error of it
// prevents that.
func NewRecorded(record func(namespace string) error) (*Network, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	n, err := newHub(record)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a network: %w", err), n.Close())
	}
	for _, b := range []string{bridge, island} {
		err := errors.Join(
			ip("-n", n.hub, "link", "add", b, "type", "bridge", "stp_state", "0", "forward_delay", "0"),
			ip("-n", n.hub, "link", "set", b, "up"),
		)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("making a network: %w", err), n.Close())
		}
	}
	return n, nil
}

// Hub returns the name of the namespace with the bridges.
func (n *Network) Hub() string { return n.hub }

// Partition isolates the named nodes: they reach each other and none of the others. It replaces
// an earlier partition.
func (n *Network) Partition(names ...string) error {
	for _, name := range names {
		if !slices.ContainsFunc(n.nodes, func(node *Node) bool { return node.Name == name }) {
			return fmt.Errorf("the network has no node %q", name)
		}
	}
	return n.Do(func() error {
		var errs []error
		for _, node := range n.nodes {
			to := bridge
			if slices.Contains(names, node.Name) {
				to = island
			}
			for _, port := range node.ports {
				errs = append(errs, plug(port, to))
			}
		}
		return errors.Join(errs...)
	})
}

// plug attaches a port to a bridge of this namespace.
func plug(port, bridge string) error {
	p, err := netlink.LinkByName(port)
	if err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	b, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", bridge, err)
	}
	if p.Attrs().MasterIndex == b.Attrs().Index {
		return nil
	}
	if err := netlink.LinkSetMaster(p, b); err != nil {
		return fmt.Errorf("putting port %s into bridge %s: %w", port, bridge, err)
	}
	return nil
}

// Join undoes Partition.
func (n *Network) Join() error { return n.Partition() }

// newHub makes the first namespace of a network. A name that already exists was left behind by
// an earlier process with this pid, and is skipped.
func newHub(record func(string) error) (*Network, error) {
	for {
		n := &Network{prefix: fmt.Sprintf("vg%d-%d", os.Getpid(), networks.Add(1)), record: record}
		n.hub = n.prefix + "-hub"
		if _, err := os.Lstat(path(n.hub)); err == nil {
			continue
		}
		return n, n.addNamespace(n.hub)
	}
}

// AddNode makes a node with one link, DefaultLink, with the given addresses. They are usable at
// once: IPv6 duplicate address detection is disabled.
func (n *Network) AddNode(name string, addrs ...netip.Prefix) (*Node, error) {
	return n.AddNodeLink(name, DefaultLink, addrs...)
}

// AddNodeLink is AddNode with a link of the given name.
func (n *Network) AddNodeLink(name, link string, addrs ...netip.Prefix) (*Node, error) {
	if !nodeName.MatchString(name) {
		return nil, fmt.Errorf("adding node %q: a name is lower-case letters, digits, hyphens and periods", name)
	}
	node := &Node{Name: name, Link: link, namespace: n.prefix + "-n-" + name, network: n}
	if err := n.addNamespace(node.namespace); err != nil {
		return nil, fmt.Errorf("adding node %q: %w", name, err)
	}
	n.nodes = append(n.nodes, node)
	if err := node.AddLink(link, addrs...); err != nil {
		return nil, fmt.Errorf("adding node %q: %w", name, err)
	}
	return node, nil
}

// Do is Node.Do in the namespace of the network's bridge.
func (n *Network) Do(f func() error) error { return inNamespace(n.hub, f) }

// Ports returns the names of the nodes by the index, in the bridge's namespace, of the ports of
// their links.
func (n *Network) Ports() (map[int]string, error) {
	out, err := ipOutput("-n", n.hub, "-json", "link", "show", "master", bridge)
	if err != nil {
		return nil, err
	}
	var links []struct {
		Index int    `json:"ifindex"`
		Alias string `json:"ifalias"`
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, fmt.Errorf("reading the ports of the bridge: %w", err)
	}
	ports := map[int]string{}
	for _, link := range links {
		ports[link.Index] = link.Alias
	}
	return ports, nil
}

// Close ends every process in the network's namespaces and removes these with everything in
// them. It may be called more than once, and continues after errors, which it returns together.
func (n *Network) Close() error {
	err := remove(n.made)
	n.made, n.nodes = nil, nil
	return err
}

// Remove is Close for a network that a process with this number left behind. It removes those
// of the given namespaces that exist; a name that is not one of a network of that process is an
// error, and nothing is removed then.
func Remove(pid int, namespaces ...string) error {
	own := regexp.MustCompile(fmt.Sprintf(`^vg%d-[0-9]+-(hub|n-[a-z0-9.-]+)$`, pid))
	var there []string
	for _, namespace := range namespaces {
		if !own.MatchString(namespace) {
			return fmt.Errorf("%q is not a namespace that process %d made for a network", namespace, pid)
		}
		if _, err := os.Lstat(path(namespace)); err == nil {
			there = append(there, namespace)
		}
	}
	return remove(there)
}

// remove ends the processes in namespaces, and removes these.
func remove(namespaces []string) error {
	var errs []error
	for _, namespace := range namespaces {
		errs = append(errs, killAll(namespace), ip("netns", "delete", namespace))
	}
	return errors.Join(errs...)
}

// addNamespace makes a namespace with loopback up and without IPv6 duplicate
// address detection.
func (n *Network) addNamespace(name string) error {
	if err := n.record(name); err != nil {
		return fmt.Errorf("recording namespace %s: %w", name, err)
	}
	if err := ip("netns", "add", name); err != nil {
		return err
	}
	n.made = append(n.made, name)
	return errors.Join(disableDAD(name), ip("-n", name, "link", "set", "lo", "up"))
}

// disableDAD makes new IPv6 addresses usable at once. The kernel uses the higher of "all" and
// the link's own value, which starts as "default".
func disableDAD(namespace string) error {
	return inNamespace(namespace, func() error {
		for _, which := range []string{"all", "default"} {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/accept_dad", []byte("0"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // no IPv6 in this kernel
				return err
			}
		}
		return nil
	})
}

// checkLink rejects names of links that the kernel would reject.
func checkLink(link string) error {
	if link == "" || len(link) > maxLinkName || strings.ContainsAny(link, "/ \t\n:") {
		return fmt.Errorf("link name %q: not 1 to %d characters without space, slash and colon", link, maxLinkName)
	}
	return nil
}
