package netdump

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Generations queries the generation of nftables' rules in the network namespace, which costs
// the kernel nothing: the rules are read only after a change. The zero value is ready to use; it
// is not safe for concurrent use.
type Generations struct{ conn *netlink.Conn }

// Current returns the generation: the kernel's count of all changes of tables, chains and rules
// in the namespace. It is never 0.
func (g *Generations) Current() (uint32, error) {
	id, err := g.ask()
	if err != nil {
		g.Close() // the next call reconnects
		return 0, fmt.Errorf("asking for the generation of nftables: %w", err)
	}
	return id, nil
}

// Close closes the connection.
func (g *Generations) Close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}

// question is NFT_MSG_GETGEN, with the header of nfnetlink: any family, version 0.
var question = netlink.Message{
	Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
	Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
}

func (g *Generations) ask() (uint32, error) {
	if g.conn == nil {
		conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
		if err != nil {
			return 0, err
		}
		g.conn = conn
	}
	answers, err := g.conn.Execute(question)
	if err != nil {
		return 0, err
	}
	for _, answer := range answers {
		if id := generation(answer); id != 0 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%d answers have none", len(answers))
}

// generation returns the generation in a NFT_MSG_NEWGEN, or 0.
func generation(m netlink.Message) uint32 {
	const header = 4 // of nfnetlink
	if m.Header.Type != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN || len(m.Data) < header {
		return 0
	}
	attributes, err := netlink.UnmarshalAttributes(m.Data[header:])
	if err != nil {
		return 0
	}
	for _, a := range attributes {
		if a.Type == unix.NFTA_GEN_ID && len(a.Data) == 4 {
			return binary.BigEndian.Uint32(a.Data)
		}
	}
	return 0
}
