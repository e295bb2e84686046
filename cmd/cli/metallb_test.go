package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
)

const threeNodes = "--node a=192.0.2.10 --node b=192.0.2.11 --node c=192.0.2.12"

// A directory is written completely, compared, and follows the request.
func TestMetalLBDirectory(t *testing.T) {
	good(t)
	args := func(more string) []string {
		return strings.Fields("metallb --address 192.0.2.17 " + threeNodes + " --dir out " + more)
	}
	exits(t, command.Finding, args("--check")...).has("out/service.yaml: missing")
	must(t, args("--hostname api.corp.example")...)
	must(t, args("--hostname api.corp.example --check")...)
	for _, name := range []string{"ipaddresspool", "l2advertisement", "service", "endpointslice-ipv4", "certificate/apiserver"} {
		if snapshot(t, "out")["out/"+name+".yaml"] == "" {
			t.Errorf("no %s.yaml", name)
		}
	}
	must(t, args("--bgp-peer 192.0.2.1=64512 --asn 64500")...)
	after := snapshot(t, "out")
	if after["out/l2advertisement.yaml"] != "" || after["out/certificate/apiserver.yaml"] != "" || after["out/bgppeer-1.yaml"] == "" {
		t.Errorf("files are %v", after)
	}
}

// The API's port is the cluster's, and clients connect to the same one unless configured
// otherwise.
func TestMetalLBPorts(t *testing.T) {
	good(t)
	lay(t, map[string]string{"vipgen.yaml": vipConfigHead + "spec: {ports: {api: 7443}}\n"})
	for flags, want := range map[string]string{"": "port: 7443\n    targetPort: 7443\n", " --port 443": "port: 443\n    targetPort: 7443\n"} {
		out := must(t, strings.Fields("metallb --address 192.0.2.17 "+threeNodes+flags)...)
		if !strings.Contains(out, want) || strings.Count(out, "  port: 7443") == 0 {
			t.Errorf("%s: no %q in\n%s", flags, want, out)
		}
	}
}

// Standard input, and a warning that does not stop the command.
func TestMetalLBStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, report := run(goodInstallConfig, strings.Fields("metallb - --address 192.0.2.17 --node 192.0.2.10")...)
	if code != command.OK || !strings.Contains(out, "\nkind: EndpointSlice\n") || !strings.Contains(report, "found IPv4 addresses of 1 control-plane nodes, expected 3") {
		t.Errorf("exit code %d, %q\n%s", code, report, out)
	}
}
