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

// hints is the data of both templates: of a script and of a Terraform configuration.
type hints struct {
	Cluster string
	// Network is the network in which missing ports of VIPs are created; empty if they
	// exist.
	Network Name
	// Subnets are the subnets of Network that contain VIPs.
	Subnets []netip.Prefix
	Ports   []hintPort
	VIPs    []hintVIP
}

// Reserves reports whether ports of VIPs are created.
func (h *hints) Reserves() bool { return h.Network != "" }

// Kept returns the VIPs whose port is known.
func (h *hints) Kept() []hintVIP {
	return slices.DeleteFunc(slices.Clone(h.VIPs), func(v hintVIP) bool { return v.Port == "" })
}

type hintPort struct {
	Name Name
	// VIPs are the VIPs that the node can hold.
	VIPs []netip.Addr
}

// hintVIP is a set of VIPs that share a Neutron port, which no server has.
type hintVIP struct {
	// Group is the name of the cluster's group of VIPs.
	Group string
	// Port is empty if unknown.
	Port      Name
	Addresses []hintAddress
	// FloatingIP leads to the IPv4 address Fixed; both are zero if there is none.
	FloatingIP, Fixed netip.Addr
}

type hintAddress struct {
	netip.Addr
	Subnet netip.Prefix
}

// Name is a name or an ID in OpenStack, with any printable characters. Only its methods
// make it part of a script or a configuration.
type Name string

// ID reports whether the name is a UUID, as IDs are.
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

// Shell returns the name as one word of a POSIX shell: in single quotes, in which only
// the closing quote is special.
func (n Name) Shell() string {
	return "'" + strings.ReplaceAll(string(n), "'", `'\''`) + "'"
}

// HCL returns the name as a quoted HCL template without interpolation, with the escapes
// of HCL's specification, "Template Expressions".
func (n Name) HCL() string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(string(n))
	text = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text)
	return `"` + text + `"`
}
