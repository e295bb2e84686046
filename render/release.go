package render

import "strings"

// Assumed names the oldest release that the input of a cluster without a given release needs,
// as nothing checks it: "" where every known release has it all.
func (c *Cluster) Assumed() string {
	if c.Version != "" || len(c.needs) == 0 {
		return ""
	}
	return strings.Join(c.needs, ", ")
}

// needs lists the parts of the input that not every known release has, with the first that
// does.
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
