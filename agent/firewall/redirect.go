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

// Redirect says which connections go to HAProxy.
type Redirect struct {
	// VIPs are the API VIPs of either family. Without any, the chains are in
	// place but redirect nothing: new connections are left alone, and those that were
	// redirected before go on being so. The ports mean nothing then.
	VIPs []netip.Addr
	// From is the port that clients use (6443), To is HAProxy's (9445).
	From, To int
	// Local are the node's own addresses that redirected connections get in place of the
	// VIP, by VIP. A socket whose own address has left the node can send nothing, whereas
	// one that has the node's goes on answering a client of the VIP: the kernel gives its
	// packets the VIP back. Where a VIP has none the connection keeps the VIP.
	Local map[netip.Addr]netip.Addr
	// Own says that connections of programs on this node go to its HAProxy wherever the VIP
	// is, so that they do not depend on its holder. It takes an address in Local.
	Own bool
	// OwnOnly says that HAProxy here is for those connections alone, as on a compute node:
	// no others are redirected, wherever the VIP is. It listens on loopback then.
	OwnOnly bool
}

// Validate reports everything that is wrong with the redirect.
func (r Redirect) Validate() error {
	var errs []error
	for i, vip := range r.VIPs {
		switch {
		case !vip.IsValid() || vip.Is4In6() || vip.Zone() != "" || vip.IsUnspecified() || vip.IsMulticast():
			errs = append(errs, fmt.Errorf("VIP %v is not a plain unicast address", vip))
		case slices.Contains(r.VIPs[:i], vip):
			errs = append(errs, fmt.Errorf("VIP %v is listed twice", vip))
		}
		if local, ok := r.Local[vip]; ok && (local.Is4() != vip.Is4() || !r.takes(local)) {
			errs = append(errs, fmt.Errorf("%v is no address of the node for VIP %v", local, vip))
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

// takes says whether HAProxy can have such an address.
func (r Redirect) takes(local netip.Addr) bool {
	return local.Zone() == "" && (local.IsGlobalUnicast() || r.OwnOnly && local.IsLoopback())
}

// ensure makes the kernel's table be exactly what r says, in one transaction,
// and reports whether anything had to change. Packets meet either the old rules
// or the new ones. Without CAP_NET_ADMIN the error is [os.ErrPermission].
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
	// Adding it first lets the deletion succeed where there is no table.
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

// remove removes the table with all that is in it. Where there is none, it has
// nothing to do.
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

// open returns a connection to nftables that is used for several requests.
func open() (*nftables.Conn, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("opening nftables: %w", err)
	}
	return conn, nil
}

// explain says what is missing where the kernel says no more than EPERM.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("needs the capability NET_ADMIN: %w", err)
	}
	return err
}
