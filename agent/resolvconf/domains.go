package resolvconf

import "strings"

// environment is where OpenShift's dispatcher script of NetworkManager writes the
// domains that DHCP brought, as systemd.exec(5) reads environment files.
const environment = "/run/resolv-prepender/env"

// parseDomains reads the domains from the dispatcher's file: those that came with
// IPv4 first. Words that could be anything but a domain are left out.
func parseDomains(data []byte) []string {
	var v4, v6 []string
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		words := strings.Fields(strings.Trim(value, `"'`))
		switch name {
		case "IP4_DOMAINS":
			v4 = keep(words, domainMarks)
		case "IP6_DOMAINS":
			v6 = keep(words, domainMarks)
		}
	}
	return append(v4, v6...)
}
