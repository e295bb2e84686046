// Package openstack makes what tells OpenStack of a cluster's VIPs: that ports of
// the nodes may use them, which port keeps their addresses, and which floating IP
// leads there (seed 002). The template of a script and the one of a Terraform
// configuration are fed from one type.
package openstack

import (
	"embed"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Hints is what both templates are executed with.
type Hints struct {
	Cluster string
	// Network is the one of the ports of VIPs, which are then made where they are
	// missing; empty where they exist.
	Network Name
	// Subnets are those of Network that hold VIPs.
	Subnets []netip.Prefix
	Ports   []Port
	VIPs    []VIP
}

// Reserves says whether ports of VIPs are made.
func (h *Hints) Reserves() bool { return h.Network != "" }

// Kept are the VIPs whose port is known.
func (h *Hints) Kept() []VIP {
	return slices.DeleteFunc(slices.Clone(h.VIPs), func(v VIP) bool { return v.Port == "" })
}

// Port is a node's port.
type Port struct {
	Name Name
	// VIPs are those that the node can hold.
	VIPs []netip.Addr
}

// VIP is a set of VIPs that share a port of Neutron, which no server has.
type VIP struct {
	// Group is the name of the cluster's group of VIPs.
	Group string
	// Port is empty where none is known.
	Port      Name
	Addresses []Address
	// FloatingIP leads to the IPv4 address Fixed; both are zero where there is none.
	FloatingIP, Fixed netip.Addr
}

// Address is a VIP with the subnet that it is in.
type Address struct {
	netip.Addr
	Subnet netip.Prefix
}

// Name is a name or an ID in OpenStack, which may hold anything that prints. It
// becomes text of a script or a configuration only through its methods.
type Name string

// ID says whether it is a UUID, as IDs are.
func (n Name) ID() bool {
	if len(n) != 36 {
		return false
	}
	for i := range len(n) {
		c := n[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// Shell is the name as one word of a POSIX shell: in single quotes, within which
// nothing is special but their end.
func (n Name) Shell() string {
	return "'" + strings.ReplaceAll(string(n), "'", `'\''`) + "'"
}

// HCL is the name as a quoted template of HCL without interpolation: the escapes
// are those of HCL's specification, "Template Expressions".
func (n Name) HCL() string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(string(n))
	text = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text)
	return `"` + text + `"`
}

// Script makes a script for bash, which shows what it would do unless it is told to
// do it.
func (h *Hints) Script() ([]byte, error) { return parsed.Run("hints.sh", h) }

// Terraform makes a configuration for Terraform or OpenTofu.
func (h *Hints) Terraform() ([]byte, error) { return parsed.Run("hints.tf", h) }
