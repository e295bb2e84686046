package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestChangeAVIP walks through the page with the dual-stack example: vipgen prints what the
// page shows, no address changes its router ID in between, and the nodes agree on a holder of
// each.
func TestChangeAVIP(t *testing.T) {
	page := string(testkit.ReadFile(t, "../../docs/change-a-vip.md"))
	installConfig, vipConfig := read(t, "../../examples/dual-stack/install-config.yaml"), read(t, "../../examples/dual-stack/vipgen.yaml")
	// The example has another ingress controller, which the page leaves out.
	vipConfig, _, _ = strings.Cut(vipConfig, "  # A pool of its own")
	t.Chdir(t.TempDir())
	testkit.Equal(t, 5, walk(t, page, installConfig, vipConfig))
}

// walk follows the steps of a page in the current directory, and returns the number of compared
// lines of output. The page's vipgen.yaml is appended to the given one.
func walk(t *testing.T, page, installConfig, vipConfig string) int {
	t.Helper()
	lay(t, map[string]string{"install-config.yaml": installConfig, "vipgen.yaml": vipConfig})
	out, checked := "", 0
	for _, block := range regexp.MustCompile("(?s)```(sh|yaml|text)\n(.*?)\n```").FindAllStringSubmatch(page, -1) {
		switch block[1] {
		case "yaml":
			lay(t, map[string]string{"vipgen.yaml": vipConfig + strings.TrimPrefix(block[2], "# vipgen.yaml\nspec:\n") + "\n"})
		case "text":
			for want := range strings.SplitSeq(block[2], "\n") {
				if checked++; !strings.Contains(out, want+"\n") {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		case "sh":
			for line := range strings.SplitSeq(block[2], "\n") {
				words := strings.Fields(line)
				switch words[0] {
				case "sed":
					for _, s := range regexp.MustCompile(`s/(\S+)\$/(\S+)/`).FindAllStringSubmatch(line, -1) {
						installConfig = regexp.MustCompile(`(?m)`+regexp.QuoteMeta(s[1])+`$`).ReplaceAllLiteralString(installConfig, s[2])
					}
					lay(t, map[string]string{"install-config.yaml": installConfig})
				case "vipgen":
					if out = step(t, words[1:]); strings.Contains(out, "split brain") {
						t.Errorf("%s\n%s", line, out)
					}
				}
			}
		}
	}
	return checked
}

// step runs a command line of a page, which must succeed; diff may find differences.
func step(t *testing.T, args []string) string {
	t.Helper()
	code, out, stderr := run("", args...)
	if code != command.OK && !(args[0] == "diff" && code == command.Finding) {
		t.Fatalf("%q: exit code %d\n%s%s", args, code, out, stderr)
	}
	return out
}

// TestDiffOfClients: a diff shows the effect of every change of VIPs and of VRRP on clients. A change
// is one of vipgen.yaml, or "OLD becomes NEW" in install-config.yaml.
func TestDiffOfClients(t *testing.T) {
	for change, want := range map[string][]string{
		"vrrp: {virtualRouterIDs: {api: 9}}": {"virtual router ID of 192.0.2.2 97 becomes 9: two nodes hold the VIP (split brain)"},
		"vrrp: {profile: virtual}":           {"VRRP settings fast (VRRPv3, 40ms, unicast) become virtual (VRRPv3, 200ms, unicast): VIPs do not answer for 640ms at most"},
		"vrrp: {mode: multicast}":            {"become fast (VRRPv3, 40ms, multicast): migrate at one instant"},
		"additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.7]}]": {"VIP of api-mgmt 192.0.2.7 is added: 192.0.2.7 answers once the nodes have the change",
			"VIP of api-mgmt 192.0.2.7 is added: have api-mgmt.demo.example.com resolve to 192.0.2.7"},
		"ingress: [{name: old, controller: default, vips: [192.0.2.7]}]": {"VIP of ingress-old 192.0.2.7 is added: 192.0.2.7 answers"},
		"[192.0.2.2] becomes [192.0.2.4]": {"VIP of api 192.0.2.2 becomes 192.0.2.4: (apiServerInternalIPs is fixed at installation): programs that read it there continue to use it, such as new machines",
			"VIP of api 192.0.2.2 becomes 192.0.2.4: the API servers' certificate stays as it was installed"},
		"[192.0.2.3] becomes [192.0.2.4]":  {"VIP of ingress 192.0.2.3 becomes 192.0.2.4: (ingressIPs is fixed at installation): programs that read it there continue to use it"},
		"dns: {upstreams: [198.51.100.1]}": nil,
	} {
		good(t)
		must(t, "render", "--dir", "a")
		spec := change
		if old, to, ok := strings.Cut(change, " becomes "); ok {
			lay(t, map[string]string{"install-config.yaml": strings.Replace(goodInstallConfig, old, to, 1)})
			spec = ""
		}
		lay(t, map[string]string{"b.yaml": fleetHead + "spec: {" + spec + "}\n"})
		must(t, "render", "--dir", "b", "-c", "b.yaml")
		d := diffOf(t, command.Finding, "a", "b")
		var got []string
		for _, s := range d.Clusters[0].Clients {
			for _, text := range s.Clients {
				got = append(got, s.What+": "+text)
			}
		}
		if (len(got) > 0) != (want != nil) {
			t.Errorf("%s: %q", change, got)
		}
		for _, w := range want {
			what, text, _ := strings.Cut(w, ": ")
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, what+": ") && strings.Contains(s, text) }) {
				t.Errorf("%s: no %q in %q", change, w, got)
			}
		}
	}
	// To an external load balancer and back, with an address that both have.
	good(t)
	lay(t, map[string]string{"b.yaml": fleetHead + "spec: {loadBalancer: {type: External}}\n"})
	must(t, "render", "--dir", "a")
	must(t, "render", "--dir", "b", "-c", "b.yaml")
	for _, tt := range []struct{ from, to, what, first string }{
		{"a", "b", "load balancer InCluster becomes External", "before: the external load balancer serves"},
		{"b", "a", "load balancer External becomes InCluster", "first the control plane changes"},
	} {
		seen := diffOf(t, command.Finding, tt.from, tt.to).Clusters[0].Clients
		if len(seen) != 1 || seen[0].What != tt.what || len(seen[0].Clients) != 5 || !strings.Contains(seen[0].Clients[0], tt.first) || !strings.Contains(seen[0].Clients[4], "192.0.2.3 is an address of both") {
			t.Errorf("%s to %s: %q", tt.from, tt.to, seen)
		}
	}
}
