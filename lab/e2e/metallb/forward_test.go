package metallb

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The addresses that nodes announce and forward, and the answers to a client of the same
// network that checks the address: on a worker the real kube-proxy and MetalLB's speaker,
// MetalLB's controller, and a real API server behind the address. With OVN-Kubernetes, too,
// Kubernetes determines the slices and ports of a Service.
func TestForwards(t *testing.T) {
	l := newLAN(t)
	objects := l.vipgen("metallb", "../../../golden/cases/baremetal-agent/install-config.yaml", "--address", newAddress, "--node", "master-0="+masterAddress)
	l.kubectl(objects, "apply", "--filename", "-")
	const well = "/readyz       HTTP 200\n\nNo problem found.\n"
	l.sees(well)
	refused, silent := []string{"[refused]"}, []string{"[no-answer]", "[unreachable]"}
	for _, tt := range []struct {
		name, patch string
		want        []string
	}{
		// Nodes announce the address, since there are endpoints, and forward nothing.
		{"another name of the port", `[{"op": "replace", "path": "/ports/0/name", "value": "api-server"}]`, refused},
		{"no name of the port", `[{"op": "remove", "path": "/ports/0/name"}]`, refused},
		// Without an endpoint no node announces it.
		{"no label", `[{"op": "remove", "path": "/metadata/labels/kubernetes.io~1service-name"}]`, silent},
		{"not ready", `[{"op": "replace", "path": "/endpoints/0/conditions/ready", "value": false}]`, silent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lan{l.in(t), l.worker, l.client}
			l.kubectl("", "patch", "endpointslice", "api-vip-ipv4", "--namespace", "openshift-config", "--type", "json", "--patch", tt.patch)
			l.sees(tt.want...)
			l.kubectl(objects, "apply", "--filename", "-") // as on the pages
			l.sees(well)
		})
	}
}

// lan is a network with an API server, a worker with MetalLB's speaker and kube-proxy, and a
// client.
type lan struct {
	*server
	worker, client *netns.Node
}

const masterAddress, newAddress = "192.168.111.20", "192.168.111.17"

func newLAN(t *testing.T) lan {
	t.Helper()
	testkit.Live(t)
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	node := func(name, addr string) *netns.Node {
		n, err := network.AddNode(name, netip.MustParsePrefix(addr+"/24"))
		testkit.Must(t, err)
		return n
	}
	s := newServerOn(t, node("master-0", masterAddress), netip.MustParseAddrPort(masterAddress+":6443"))
	l := lan{s, node("worker-0", "192.168.111.30"), node("client", "192.168.111.99")}
	testkit.Must(t, l.worker.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) }))
	l.kubectl(cluster, "apply", "--filename", "-")
	l.controller("metallb-system")
	l.start("metallb-speaker", l.command(l.worker, "metallb-speaker", "--namespace", "metallb-system", "--node-name", "worker-0", "--pod-name", "speaker", "--host", "127.0.0.1"))
	// Limits of the kernel's table of connections belong to the machine: 0 leaves them alone.
	l.start("kube-proxy", l.command(l.worker, "kube-proxy", "--kubeconfig", l.kubeconfig, "--hostname-override", "worker-0", "--proxy-mode", "nftables",
		"--conntrack-max-per-core", "0", "--conntrack-min", "0", "--conntrack-tcp-timeout-established", "0", "--conntrack-tcp-timeout-close-wait", "0",
		"--healthz-bind-address", "127.0.0.1:10256", "--metrics-bind-address", "127.0.0.1:10249"))
	return l
}

// cluster holds the objects that kubelet would create: the worker with an address, which
// kube-proxy waits for, and the speaker's own pod.
//
//go:embed testdata/cluster.yaml
var cluster string

// vipgen runs the program, and returns its output.
func (l lan) vipgen(args ...string) string {
	l.Helper()
	cmd := exec.Command(testkit.Vipgen(l.T), args...)
	cmd.Stderr = l.Output()
	out, err := cmd.Output()
	testkit.Must(testkit.In(l, args), err)
	return string(out)
}

// kubectl runs on the client until it succeeds: the server announces a kind a moment before it
// serves it.
func (l lan) kubectl(input string, args ...string) {
	l.Helper()
	var last string
	l.await(fmt.Sprintf("kubectl %s", args), func() bool {
		cmd := l.command(l.client, "kubectl", append([]string{"--cache-dir", filepath.Join(l.dir, "kubectl")}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if text := string(out); err != nil && text != last {
			l.Logf("kubectl %s: %v\n%s", args, err, out)
			last = text
		}
		return err == nil
	})
}

// sees waits until a client that checks the address gets one of these answers.
func (l lan) sees(words ...string) {
	l.Helper()
	var last string
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("output of the last check:\n%s", last)
		}
	})
	l.await("a client to see "+strings.Join(words, " or "), func() bool {
		// It resolves the address anew, like a client that has just started.
		testkit.Must(l, l.client.Command(l.Context(), "ip", "neighbour", "flush", "all").Run())
		check := l.client.Command(context.Background(), testkit.Vipgen(l.T), "check-endpoint", newAddress, "--server-name", "api."+domain, "--ca", filepath.Join(l.dir, "ca.crt"), "--timeout", "1s")
		out, _ := check.CombinedOutput() // it fails if something is wrong
		last = string(out)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(last, w) })
	})
}
