package installconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
)

type vipNames struct {
	apiVIPs, apiVIP, ingressVIPs, ingressVIP, dnsVIP string
}

var (
	spelling      = vipNames{"apiVIPs", "apiVIP", "ingressVIPs", "ingressVIP", "dnsVIP"}
	ovirtSpelling = vipNames{"api_vips", "api_vip", "ingress_vips", "ingress_vip", "dns_vip"}
)

func (r *reader) virtualIPs(c *InstallConfig, in *fileVIPs, names vipNames) {
	at := "platform." + c.Platform + "."
	c.APIVIPs = r.vips(in.APIVIPs, in.APIVIP, at, names.apiVIPs, names.apiVIP)
	c.IngressVIPs = r.vips(in.IngressVIPs, in.IngressVIP, at, names.ingressVIPs, names.ingressVIP)
	if names == ovirtSpelling || c.Platform == nutanix {
		r.ipv4First(c.APIVIPs)
		r.ipv4First(c.IngressVIPs)
	}
	if dns := at + names.dnsVIP; in.DNSVIP.IsValid() {
		r.deprecated(dns, "a DNS VIP", "none, as every node answers for itself since OpenShift 4.5")
		if r.usable(in.DNSVIP, dns) {
			c.DNSVIP = &Address{Addr: in.DNSVIP, Field: dns}
		}
	}
	if in.LoadBalancer != nil {
		c.LoadBalancer = r.loadBalancer(at+"loadBalancer.type", in.LoadBalancer.Type)
	}
	c.ExternalDNS = r.externalDNS(at+"dnsRecordsType", in.DNSRecords, c.LoadBalancer)
}

// vips merges the list of VIPs with the single VIP of releases before 4.12. Where both are
// given, the list must contain the single one.
func (r *reader) vips(list []netip.Addr, single netip.Addr, at, listName, singleName string) []Address {
	var all []Address
	for i, a := range list {
		if field := fmt.Sprintf("%s%s[%d]", at, listName, i); a.IsValid() && r.usable(a, field) {
			all = append(all, Address{Addr: a, Field: field})
		}
	}
	if single.IsValid() {
		field := at + singleName
		r.deprecated(field, "an old spelling", listName)
		switch {
		case !r.usable(single, field):
		case len(list) == 0:
			all = append(all, Address{Addr: single, Field: field})
		case !slices.Contains(list, single):
			r.add(problem.ConflictingFields, field, problem.Quote(single.String()),
				"an address of "+listName, "remove "+singleName)
		}
	}
	return r.onePerFamily(all)
}

// ipv4First sorts VIPs of both families, as the installer does on Nutanix and oVirt (its
// pkg/types/validation/installconfig.go, ensureIPv4IsFirstInDualStackSlice).
func (r *reader) ipv4First(list []Address) {
	if len(list) == 2 && list[0].Is6() {
		r.problems = append(r.problems, problem.Problem{Severity: problem.Warning, Code: problem.FamilyOrder, Field: list[0].Field,
			Found: "IPv6 first", Expected: "IPv4 first", Hint: "they were put in this order, as OpenShift's installer does"})
		list[0], list[1] = list[1], list[0]
	}
}

func (r *reader) onePerFamily(all []Address) []Address {
	var kept []Address
	for _, a := range all {
		same := func(b Address) bool { return a.Is4() == b.Is4() }
		if slices.ContainsFunc(kept, same) {
			r.add(problem.BadValue, a.Field, problem.Quote(a.String())+", a second "+Family(a.Addr)+" address",
				"at most one IPv4 and one IPv6 address", "")
			continue
		}
		kept = append(kept, a)
	}
	return kept
}

// externalDNS reports whether dnsRecordsType is External, which OpenShift's API allows with
// UserManaged alone (config/v1, featureGate OnPremDNSRecords).
func (r *reader) externalDNS(field, value, loadBalancer string) bool {
	switch {
	case value == "" || value == "Internal":
		return false
	case value != "External":
		r.add(problem.BadValue, field, problem.Quote(value), "Internal or External", "")
	case loadBalancer != "UserManaged":
		r.add(problem.ConflictingFields, field, "External with OpenShift's load balancer", "loadBalancer.type: UserManaged beside it, as OpenShift wants", "")
	}
	return true
}

func (r *reader) loadBalancer(field, value string) string {
	switch value {
	case "OpenShiftManagedDefault", "UserManaged":
		return value
	case "":
		r.missing(field, "OpenShiftManagedDefault or UserManaged, or no loadBalancer at all", strings.TrimSuffix(field, ".type"))
		return ""
	}
	r.add(problem.BadValue, field, problem.Quote(value), "OpenShiftManagedDefault or UserManaged", "")
	return ""
}

// openStackDefaults fills in the VIPs that the installer chooses when it
// manages the load balancer: the fifth and the seventh address of the first
// machine network.
func openStackDefaults(c *InstallConfig, in *fileVIPs) {
	if c.LoadBalancer == "UserManaged" || len(c.MachineNetworks) == 0 {
		return
	}
	network := c.MachineNetworks[0].Prefix
	if len(in.APIVIPs) == 0 && !in.APIVIP.IsValid() {
		c.APIVIPs = hostOf(network, 5, "platform.openstack.apiVIPs")
	}
	if len(in.IngressVIPs) == 0 && !in.IngressVIP.IsValid() {
		c.IngressVIPs = hostOf(network, 7, "platform.openstack.ingressVIPs")
	}
}

func hostOf(network netip.Prefix, number int, field string) []Address {
	a := network.Addr()
	for range number {
		a = a.Next()
	}
	if !network.Contains(a) {
		return nil
	}
	return []Address{{Addr: a, Field: field, Default: true}}
}

func (r *reader) floatingIPs(c *InstallConfig, in *fileOpenStack) {
	const at = "platform.openstack."
	one := func(a netip.Addr, name string) *Address {
		if !a.IsValid() || !r.usable(a, at+name) {
			return nil
		}
		return &Address{Addr: a, Field: at + name}
	}
	c.APIFloatingIP, c.IngressFloatingIP = one(in.APIFloatingIP, "apiFloatingIP"), one(in.IngressFloatingIP, "ingressFloatingIP")
	if in.LBFloatingIP.IsValid() {
		r.deprecated(at+"lbFloatingIP", "an old spelling", "apiFloatingIP")
		if c.APIFloatingIP == nil {
			c.APIFloatingIP = one(in.LBFloatingIP, "lbFloatingIP")
		}
	}
}
