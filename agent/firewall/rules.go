package firewall

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/lists"
)

// priority puts the chains before any destination NAT (-100): the first chain with a
// verdict on a connection counts. nft prints nearer values by a name that it does not
// parse in the output hook.
const priority = nftables.ChainPriority(-111)

// SYN alone, of the flags FIN, SYN, RST and ACK (RFC 9293 section 3.1).
const (
	flagSYN      = 0x02
	flagsOpening = 0x01 | flagSYN | 0x04 | 0x10
)

// register is used by every expression, second where two are needed.
const (
	register = 1
	second   = 2
)

func table() *nftables.Table {
	return &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
}

// output is the hook for connections of the node itself, prerouting for all others.
const (
	output     = "output"
	prerouting = "prerouting"
)

// chains returns the chains of both hooks, by name.
func chains() []*nftables.Chain {
	hook := func(name string, hook *nftables.ChainHook) *nftables.Chain {
		accept := nftables.ChainPolicyAccept
		return &nftables.Chain{
			Name:     name,
			Table:    table(),
			Type:     nftables.ChainTypeNAT,
			Hooknum:  hook,
			Priority: nftables.ChainPriorityRef(priority),
			Policy:   &accept,
		}
	}
	return []*nftables.Chain{
		hook(output, nftables.ChainHookOutput),
		hook(prerouting, nftables.ChainHookPrerouting),
	}
}

// rules returns the rules of a chain: one for each VIP, by address, and the one that
// keeps connections tracked.
func rules(r Redirect, chain string) [][]expr.Any {
	vips := slices.Clone(r.VIPs)
	slices.SortFunc(vips, netip.Addr.Compare)
	var out [][]expr.Any
	for _, vip := range vips {
		anywhere := r.Own && chain == output && r.Local[vip].IsValid()
		if r.OwnOnly && !anywhere {
			continue
		}
		out = append(out, redirect(vip, r.Local[vip], uint16(r.From), uint16(r.To), anywhere))
	}
	return append(out, tracking())
}

// tracking returns "ct state new", which has no effect by itself: the kernel tracks, and
// so translates, connections only while some rule uses their state. It keeps connections
// alive that were redirected before a withdrawal.
func tracking() []expr.Any {
	state := binary.NativeEndian.AppendUint32(nil, expr.CtStateBitNEW)
	return []expr.Any{
		&expr.Ct{Register: register, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: state, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: make([]byte, 4)},
	}
}

// redirect returns a rule in the form in which the kernel returns it:
//
//	ip daddr VIP tcp dport FROM tcp flags syn / fin,syn,rst,ack fib daddr type local dnat ip to LOCAL:TO
//
// The target address is explicit: "redirect" would use the first address of the incoming
// link, and drop the connection if it has none. Without local only the port changes. The fib
// match restricts the rule to local VIPs, unless anywhere is set: otherwise connections
// through this node to the holder would change, too. Only opening segments match: where
// nothing else tracked connections before, existing ones look new, and would break.
func redirect(vip, local netip.Addr, from, to uint16, anywhere bool) []expr.Any {
	protocol, offset := byte(unix.NFPROTO_IPV4), uint32(16) // RFC 791 section 3.1
	if vip.Is6() {
		protocol, offset = unix.NFPROTO_IPV6, 24 // RFC 8200 section 3
	}
	addr := vip.AsSlice()
	match := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register},
		equals(protocol),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(addr))},
		equals(addr...),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		equals(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binary.BigEndian.AppendUint16(nil, from)...),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 1, Mask: []byte{flagsOpening}, Xor: []byte{0}},
		equals(flagSYN),
	}
	if !anywhere {
		match = append(match, &expr.Fib{Register: register, FlagDADDR: true, ResultADDRTYPE: true},
			equals(binary.NativeEndian.AppendUint32(nil, unix.RTN_LOCAL)...))
	}
	port := func(register uint32) *expr.Immediate {
		return &expr.Immediate{Register: register, Data: binary.BigEndian.AppendUint16(nil, to)}
	}
	nat := &expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_INET, RegProtoMin: register, RegProtoMax: register, Specified: true}
	if !local.IsValid() {
		return append(match, port(register), nat)
	}
	nat.Family = uint32(protocol)
	nat.RegAddrMin, nat.RegAddrMax = register, register
	nat.RegProtoMin, nat.RegProtoMax = second, second
	return append(match, &expr.Immediate{Register: register, Data: local.AsSlice()}, port(second), nat)
}

func equals(data ...byte) *expr.Cmp {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: data}
}

// readsAs reports whether the kernel's table matches r exactly.
func readsAs(conn *nftables.Conn, r Redirect) (bool, error) {
	found, err := conn.ListTableOfFamily(TableName, nftables.TableFamilyINet)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the table %s: %w", TableName, explain(err))
	case found.Flags != 0: // dormant, or owned by another program
		return false, nil
	}
	got, err := readChains(conn)
	if err != nil || !reflect.DeepEqual(got, chains()) {
		return false, err
	}
	for _, chain := range got {
		read, err := readRules(conn, chain)
		if err != nil || !reflect.DeepEqual(read, rules(r, chain.Name)) {
			return false, err
		}
	}
	return true, nil
}

func readChains(conn *nftables.Conn) ([]*nftables.Chain, error) {
	all, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, fmt.Errorf("reading the chains of the table %s: %w", TableName, explain(err))
	}
	found := lists.Filter(all, func(chain *nftables.Chain) bool { return chain.Table.Name == TableName })
	slices.SortFunc(found, func(a, b *nftables.Chain) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

func readRules(conn *nftables.Conn, chain *nftables.Chain) ([][]expr.Any, error) {
	found, err := conn.GetRules(chain.Table, chain)
	if errors.Is(err, unix.ENOENT) { // removed since it was listed
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chain %s of the table %s: %w", chain.Name, TableName, explain(err))
	}
	return lists.Map(found, func(rule *nftables.Rule) []expr.Any { return rule.Exprs }), nil
}
