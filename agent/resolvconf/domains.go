package resolvconf

import "strings"

// environment is the environment file (systemd.exec(5)) in which OpenShift's dispatcher
// script of NetworkManager writes the domains from DHCP.
const environment = "/run/resolv-prepender/env"

// parseDomains parses the domains in the dispatcher's file, those of IPv4 first. Words
// with other characters than a domain's are left out.
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
