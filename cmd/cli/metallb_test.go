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
