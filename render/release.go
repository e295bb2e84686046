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
	if i.ExternalDNS {
		out = append(out, "4.21 or later for dnsRecordsType")
	}
	for _, f := range r.features() {
		if f.used && f.since != "" && i.FeatureSet == "" {
			out = append(out, f.since+" or later for "+f.what)
		}
	}
	return out
}
