package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"time"
)

// Node is a namespace of a Network.
type Node struct {
	Name string
	Link string // the name of its first link

	namespace string
	network   *Network
	ports     []string // of the bridge, in the order of its links
}

// Namespace returns the name of the node's network namespace for ip netns.
func (n *Node) Namespace() string { return n.namespace }

// AddLink attaches another link of the node to the network's bridge, brings it up and adds the
// addresses.
func (n *Node) AddLink(link string, addrs ...netip.Prefix) error {
	if err := checkLink(link); err != nil {
		return err
	}
	n.network.ports++
	port := "p" + strconv.Itoa(n.network.ports)
	n.ports = append(n.ports, port)
	hub := n.network.hub
	err := ip("link", "add", link, "netns", n.namespace, "type", "veth", "peer", "name", port, "netns", hub)
	if err != nil {
		return err
	}
	errs := []error{
		ip("-n", hub, "link", "set", port, "master", bridge, "alias", n.Name, "up"),
		ip("-n", n.namespace, "link", "set", link, "up"),
	}
	for _, addr := range addrs {
		errs = append(errs, n.AddAddress(link, addr))
	}
	return errors.Join(errs...)
}

// AddAddress adds an address to one of the node's links. If the link is up, the address is
// usable at once.
func (n *Node) AddAddress(link string, addr netip.Prefix) error {
	args := []string{"-n", n.namespace, "address", "add", addr.String(), "dev", link}
	if addr.Addr().Is6() {
		args = append(args, "nodad")
	}
	if err := ip(args...); err != nil || addr.Addr().Is4() {
		return err
	}
	return n.awaitLocal(link, addr.Addr())
}

// usableWithin is the time-out for an address to become usable: milliseconds unless all cores are
// busy.
const usableWithin = time.Minute

// awaitLocal waits until an IPv6 address of a link is in the local routing table. The kernel adds it
// asynchronously; until then connections from the node itself fail after three seconds.
func (n *Node) awaitLocal(link string, addr netip.Addr) error {
	for deadline := time.Now().Add(usableWithin); ; time.Sleep(time.Millisecond) {
		up, err := ipOutput("-n", n.namespace, "link", "show", "up", "dev", link)
		if err != nil || len(up) == 0 {
			return err
		}
		route, err := ipOutput("-n", n.namespace, "-6", "route", "show", "table", "local", addr.String())
		if err != nil || len(route) > 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("address %v of %s not usable after %v", addr, n.Name, usableWithin)
		}
	}
}

// Up reports whether the node's first link is up.
func (n *Node) Up() (up bool, err error) {
	err = n.Do(func() error {
		link, err := net.InterfaceByName(n.Link)
		if err != nil {
			return fmt.Errorf("reading the link of %s: %w", n.Name, err)
		}
		up = link.Flags&net.FlagUp != 0
		return nil
	})
	return up, err
}

// SetLink sets the node's first link up or down. The kernel keeps the IPv4 addresses of a link
// that is down, and drops the IPv6 ones.
func (n *Node) SetLink(up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return ip("-n", n.namespace, "link", "set", n.Link, state)
}

// Addresses returns the current addresses of the node's first link, except for IPv6 link-local
// ones, in the kernel's order.
func (n *Node) Addresses() ([]netip.Prefix, error) {
	out, err := ipOutput("-n", n.namespace, "-json", "address", "show", "dev", n.Link)
	if err != nil {
		return nil, err
	}
	var links []struct {
		Addresses []struct {
			Local string `json:"local"`
			Bits  int    `json:"prefixlen"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, fmt.Errorf("reading the addresses of %s: %w", n.Name, err)
	}
	var found []netip.Prefix
	for _, link := range links {
		for _, a := range link.Addresses {
			addr, err := netip.ParseAddr(a.Local)
			if err != nil {
				return nil, fmt.Errorf("reading the addresses of %s: %w", n.Name, err)
			}
			if !addr.IsLinkLocalUnicast() {
				found = append(found, netip.PrefixFrom(addr, a.Bits))
			}
		}
	}
	return found, nil
}

// Command returns a command that will run inside the node's namespace, with the host's file
// system. When ctx ends it is killed.
//
// It uses nsenter, which executes the command: its pid is the command's own. (ip netns exec
// would mount another /sys, which hides control groups.)
func (n *Node) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{"--net=" + path(n.namespace), "--", name}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}

// Do calls f on a thread inside the node's namespace: sockets opened by f itself belong to the
// node, even after Do has returned. Other goroutines of f are outside.
func (n *Node) Do(f func() error) error { return inNamespace(n.namespace, f) }

// Kill kills every process in the node's namespace by SIGKILL, without time to clean up.
func (n *Node) Kill() error { return killAll(n.namespace) }
