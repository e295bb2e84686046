package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// register is used by every expression.
const register = 1

// atOnce is the number of addresses in one netlink message, whose attributes hold at most
// 64 KiB.
const atOnce = 500

func table() *nftables.Table {
	return &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
}

// chain returns a chain before every filter (0), so that no other rule logs dropped
// packets.
func chain() *nftables.Chain {
	accept := nftables.ChainPolicyAccept
	return &nftables.Chain{
		Name: "input", Table: table(), Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityRef(-10), Policy: &accept,
	}
}

// place replaces the table with one for groups returned by Merge.
func place(groups []Group) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	// The first AddTable makes DelTable succeed without a table.
	conn.AddTable(table())
	conn.DelTable(table())
	conn.AddTable(table())
	conn.AddChain(chain())
	rule := func(note []byte, parts ...[]expr.Any) {
		conn.AddRule(&nftables.Rule{Table: table(), Chain: chain(), Exprs: slices.Concat(parts...), UserData: note})
	}
	for i := range groups {
		g := &groups[i]
		for n, s := range g.Senders {
			is := s.matches(g.IPv6)
			if len(s.From) > 0 {
				set, err := addSet(conn, fmt.Sprintf("senders-%d-%d", i, n), g.IPv6, s)
				if err != nil {
					return err
				}
				is = append(is, load(g.IPv6, source), []expr.Any{&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID}})
			}
			rule(nil, g.matches(), slices.Concat(is...), verdict(expr.VerdictAccept))
		}
		rule([]byte{byte(i)}, g.matches(), []expr.Any{&expr.Counter{}}, verdict(expr.VerdictDrop))
	}
	return conn.Flush()
}

func addSet(conn *nftables.Conn, name string, ipv6 bool, s Sender) (*nftables.Set, error) {
	set := &nftables.Set{Table: table(), Name: name, KeyType: nftables.TypeIPAddr}
	if ipv6 {
		set.KeyType = nftables.TypeIP6Addr
	}
	if err := conn.AddSet(set, nil); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(s.From, atOnce) {
		var elements []nftables.SetElement
		for _, a := range some {
			elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
		}
		if err := conn.SetAddElements(set, elements); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// matches matches all packets of a group. The protocol is the one after extension
// headers, the router ID the second byte of VRRP (RFC 9568 section 5.2).
func (g *Group) matches() []expr.Any {
	family := byte(unix.NFPROTO_IPV4)
	if g.IPv6 {
		family = unix.NFPROTO_IPV6
	}
	link := make([]byte, maxLink)
	copy(link, g.Interface)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register}, equals(family),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}, equals(vrrp.Protocol),
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register}, equals(link...),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 1, Len: 1}, equals(byte(g.RouterID)),
	}
}

// matches matches the packets of a sender, apart from its source.
func (s *Sender) matches(ipv6 bool) (out [][]expr.Any) {
	if s.To.IsValid() {
		out = append(out, load(ipv6, destination), []expr.Any{equals(s.To.AsSlice()...)})
	}
	if s.FullTTL {
		out = append(out, load(ipv6, ttl), []expr.Any{equals(255)})
	}
	return out
}

type field int

const (
	source field = iota
	destination
	ttl
)

// load loads a field: RFC 791 section 3.1, RFC 8200 section 3.
func load(ipv6 bool, f field) []expr.Any {
	offset, size := []uint32{12, 16, 8}[f], uint32(4)
	if ipv6 {
		offset, size = []uint32{8, 24, 7}[f], 16
	}
	if f == ttl {
		size = 1
	}
	return []expr.Any{&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}}
}

func equals(data ...byte) *expr.Cmp {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: data}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

func ruleCount(groups []Group) int {
	n := 0
	for i := range groups {
		n += len(groups[i].Senders) + 1
	}
	return n
}

// readCounters returns the dropped packets of the groups placed last. whole reports
// whether all placed rules exist.
func readCounters(groups []Group) (dropped map[key]uint64, whole bool, err error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, false, err
	}
	rules, err := conn.GetRules(table(), chain())
	if errors.Is(err, unix.ENOENT) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the guard: %w", explain(err))
	}
	dropped = map[key]uint64{}
	for _, r := range rules {
		if len(r.UserData) != 1 || int(r.UserData[0]) >= len(groups) {
			continue
		}
		for _, e := range r.Exprs {
			if c, ok := e.(*expr.Counter); ok {
				dropped[groups[r.UserData[0]].key()] = c.Packets
			}
		}
	}
	return dropped, len(rules) == ruleCount(groups), nil
}
