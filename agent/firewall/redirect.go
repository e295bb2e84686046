package firewall

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// TableName is the name of the nftables table, of family inet.
const TableName = "vipgen"

// Redirect describes the connections that go to HAProxy.
type Redirect struct {
	// VIPs are the API VIPs of either family. Without any, the chains are in place but
	// redirect no new connections; redirected ones continue. The ports are unused then.
	VIPs []netip.Addr
	// From is the clients' port (6443), To is HAProxy's (9445).
	From, To int
	// Local maps VIPs to the node's own addresses, the targets of redirected connections.
	// A socket bound to a VIP that left the node cannot send; one at the node's own
	// address can still answer a client of the VIP, because the kernel translates its
	// packets. A VIP without an entry stays the target.
	Local map[netip.Addr]netip.Addr
	// Own redirects connections of programs on this node wherever the VIP is, so that
	// they do not depend on its holder. It needs an address in Local.
	Own bool
	// OwnOnly redirects no other connections, as on a compute node, where HAProxy listens
	// on loopback.
	OwnOnly bool
}

// Validate returns all problems of the redirect.
func (r Redirect) Validate() error {
	var errs []error
	for i, vip := range r.VIPs {
		switch {
		case !vip.IsValid() || vip.Is4In6() || vip.Zone() != "" || vip.IsUnspecified() || vip.IsMulticast():
			errs = append(errs, fmt.Errorf("VIP %v is not a plain unicast address", vip))
		case slices.Contains(r.VIPs[:i], vip):
			errs = append(errs, fmt.Errorf("VIP %v is listed twice", vip))
		}
		if local, ok := r.Local[vip]; ok && (local.Is4() != vip.Is4() || !r.accepts(local)) {
			errs = append(errs, fmt.Errorf("%v is not an address of the node for VIP %v", local, vip))
		}
	}
	if len(r.VIPs) == 0 {
		return nil
	}
	for _, port := range []int{r.From, r.To} {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("port %d is not in 1 to 65535", port))
		}
	}
	if r.From == r.To {
		errs = append(errs, fmt.Errorf("port %d would be redirected to itself", r.From))
	}
	return errors.Join(errs...)
}

// accepts reports whether HAProxy can listen at an address.
func (r Redirect) accepts(local netip.Addr) bool {
	return local.Zone() == "" && (local.IsGlobalUnicast() || r.OwnOnly && local.IsLoopback())
}

// ensure makes the kernel's table match r exactly, in one transaction, and reports
// whether it changed. Packets meet either the old rules or the new ones. Without
// CAP_NET_ADMIN the error is [os.ErrPermission].
func ensure(r Redirect) (changed bool, err error) {
	if err := r.Validate(); err != nil {
		return false, fmt.Errorf("redirect: %w", err)
	}
	conn, err := open()
	if err != nil {
		return false, err
	}
	defer conn.CloseLasting()
	present, err := readsAs(conn, r)
	if err != nil || present {
		return false, err
	}
	// The first AddTable makes DelTable succeed without a table.
	conn.AddTable(table())
	conn.DelTable(table())
	conn.AddTable(table())
	for _, chain := range chains() {
		conn.AddChain(chain)
		for _, rule := range rules(r, chain.Name) {
			conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: rule})
		}
	}
	if err := conn.Flush(); err != nil {
		return false, fmt.Errorf("placing the redirect: %w", explain(err))
	}
	return true, nil
}

// remove removes the table and its content. A missing table is no error.
func remove() error {
	conn, err := open()
	if err != nil {
		return err
	}
	defer conn.CloseLasting()
	conn.DelTable(table())
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the redirect: %w", explain(err))
	}
	return nil
}

// open returns a connection to nftables for several requests.
func open() (*nftables.Conn, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("opening nftables: %w", err)
	}
	return conn, nil
}

// explain names the missing capability in place of a bare EPERM.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("needs the capability NET_ADMIN: %w", err)
	}
	return err
}
