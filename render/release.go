package render

import "strings"

// Assumed says of a cluster whose release is not given which one its input needs,
// as nothing checks it: "" where every known release will do.
func (c *Cluster) Assumed() string {
	if c.Version != "" || len(c.needs) == 0 {
		return ""
	}
	return strings.Join(c.needs, ", ")
}

// needs are what of the input not every known release has, with the first that does.
func (r *resolver) needs() (out []string) {
	i := r.in.Install
	if i.LoadBalancer == "UserManaged" {
		out = append(out, "4.13 or later for UserManaged")
	}
	if i.Arbiter != nil {
		out = append(out, "4.20 or later for an arbiter")
	}
	if i.ExternalDNS {
		out = append(out, "4.21 or later for dnsRecordsType")
	}
	return out
}
