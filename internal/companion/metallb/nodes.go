package metallb

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// nodes returns the nodes with API servers: the given ones, or else those of the input.
func (r *resolver) nodes() (out []Node) {
	if len(r.q.Selector) > 0 {
		if len(r.q.Nodes) > 0 {
			r.badFlag(problem.ConflictingFields, "--node", "it with --selector", "one of them: a selector is enough to find the API servers")
		}
		if r.q.Namespace == "" {
			r.badFlag(problem.MissingField, "--namespace", "nothing", "the namespace of the pods that --selector is to find, such as openshift-kube-apiserver")
		}
		return nil
	}
	if len(r.q.Nodes) > 0 {
		return r.givenNodes()
	}
	if r.c == nil {
		return nil
	}
	// The arbiter runs no API server, and the bootstrap host's goes away.
	for _, p := range r.c.Config.Spec.Peers {
		if p.Role == v1alpha1.RoleMaster {
			out = append(out, Node{Name: p.Name, Addresses: p.Addresses})
		}
	}
	return out
}

func (r *resolver) givenNodes() (out []Node) {
	const flag = "--node"
	names := map[string]bool{}
	taken := map[netip.Addr]bool{}
	for _, text := range r.q.Nodes {
		name, list, ok := strings.Cut(text, "=")
		if !ok {
			name, list = "", text
		}
		if ok && !v1alpha1.ValidName(name) {
			r.badFlag(problem.BadName, flag, problem.Quote(name), "[name=]address[,address], the name that of a node")
			continue
		}
		if ok && names[name] {
			r.badFlag(problem.DuplicateKey, flag, problem.Quote(name)+" twice", "each node once")
			continue
		}
		names[name] = true
		n := Node{Name: name}
		for part := range strings.SplitSeq(list, ",") {
			a, ok := r.address(flag, part)
			if !ok {
				continue
			}
			if taken[a] {
				r.badFlag(problem.DuplicateKey, flag, a.String()+" twice", "each address once")
				continue
			}
			taken[a] = true
			n.Addresses = append(n.Addresses, a)
		}
		out = append(out, n)
	}
	return out
}

// checkNodes requires a node to forward to for every family of the VIP, which does not have the
// VIP itself.
func (r *resolver) checkNodes() {
	p := r.plan.params
	for _, e := range p.Endpoints("") { // known nodes are compared with the whole input
		if len(r.q.Nodes) > 0 && slices.Contains(p.Addresses, e.Address) {
			r.badFlag(problem.VIPTaken, "--address", e.Address.String(), "an address of its own, this is the one of a control-plane node")
		}
	}
	unread := slices.ContainsFunc(r.List.Errors(), func(p problem.Problem) bool { return p.Field == "--node" })
	if unread || len(r.q.Selector) > 0 {
		return
	}
	want := r.c.Config.Spec.ControlPlane.Replicas
	for _, family := range p.Families() {
		have := len(p.Endpoints(family))
		const hint = "give all of them: --node NAME=ADDRESS,... for each ('oc get nodes -o wide'), or --selector"
		switch {
		case have == 0:
			r.Add(problem.MissingField, "--node", "no control-plane node with an "+family+" address",
				"the nodes that run API servers", hint+"; hosts in agent-config.yaml with static addresses are known")
		case have < want:
			r.Warn(problem.MissingField, "--node", fmt.Sprintf("%s addresses of %d control-plane nodes", family, have),
				fmt.Sprintf("%d, as the install-config has it", want), hint)
		}
	}
}

// peers returns the routers that the addresses are announced to.
func (r *resolver) peers() (out []Peer) {
	const flag = "--bgp-peer"
	seen := map[netip.AddrPort]bool{}
	for _, text := range r.q.Peers {
		where, number, ok := strings.Cut(text, "=")
		asn, err := strconv.ParseUint(number, 10, 32)
		addr, parsed := parsePeer(where)
		switch {
		case !ok || err != nil || asn == 0 || !parsed:
			r.badFlag(problem.BadValue, flag, problem.Quote(text), "address[:port]=ASN, such as 192.0.2.1=64512 or [2001:db8::1]:179=64512, the ASN from 1 to 4294967295")
			continue
		case v1alpha1.UsableAddress(addr.Addr()) != "":
			r.badFlag(problem.BadAddress, flag, fmt.Sprintf("%s, %s", addr.Addr(), v1alpha1.UsableAddress(addr.Addr())), "the address of a router")
			continue
		case addr.Port() == 0 || addr.Port() > 16384: // the limit of BGPPeer's schema
			r.badFlag(problem.BadValue, flag, fmt.Sprintf("port %d", addr.Port()), "a port from 1 to 16384, as MetalLB has it")
			continue
		case seen[addr]:
			r.badFlag(problem.DuplicateKey, flag, addr.String()+" twice", "each router once")
			continue
		}
		seen[addr] = true
		out = append(out, Peer{
			Name:     r.plan.params.Name + "-" + strconv.Itoa(len(out)+1),
			Address:  addr,
			ASN:      uint32(asn),
			MultiHop: uint32(asn) != r.q.ASN && r.c != nil && !v1alpha1.InNetworks(r.c.Config.Spec.AssumedNetworks(), addr.Addr()),
		})
	}
	return out
}

// parsePeer parses address[:port].
func parsePeer(s string) (netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, defaultBGPPort), true
	}
	ap, err := netip.ParseAddrPort(s)
	return ap, err == nil
}
