package endpoint

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A real kube-apiserver with certificates like OpenShift's: one for the API's name, and another
// one for all other names.
func TestAPIServer(t *testing.T) {
	testkit.Live(t)
	free := daemon.FreePort(t)
	loopback, port := free.Addr(), free.Port()
	plane, err := kubeapi.NewReal(kubeapi.RealConfig{Dir: t.TempDir(), Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"), Addr: loopback, Port: port, Domain: "demo.example.com"})
	testkit.Must(t, err)
	t.Cleanup(func() { plane.Close() })
	server, err := plane.Server(nil, loopback)
	testkit.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	testkit.Must(t, errors.Join(server.Launch(), server.AwaitReady(ctx)))
	ca, err := ReadAuthorities(plane.CA().CertPEM)
	testkit.Must(t, err)
	at := func(host, name string) Target {
		return Target{Host: host, Port: port, ServerName: name, CAs: ca, Path: "/readyz", Timeout: patience,
			Pinned: []Pin{{Host: "*", Port: port, Addresses: []netip.Addr{loopback}}}}
	}
	r := Check(ctx, at("api-int.demo.example.com", ""))
	if e := r.Endpoints[0]; !r.OK || e.Ready.Status != 200 || !e.NameOK || !e.TrustOK || !e.TimeOK {
		t.Errorf("the right name: %+v", r)
	}
	live := at("127.0.0.1", "api-int.demo.example.com")
	live.Path = "/livez"
	if r := Check(ctx, live); !r.OK {
		t.Errorf("an address with the right name: %+v", r)
	}
	for name, target := range map[string]Target{"another name": at(apiName, ""), "an address": at("127.0.0.1", "")} {
		r := Check(ctx, target)
		if codes(r) != "wrong-name" || !strings.Contains(r.Findings[0].What, "kubernetes.default.svc") || r.Endpoints[0].Ready.Status != 200 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// The kernel accepts connections for a frozen server.
	testkit.Must(t, server.Freeze())
	frozen := at("api-int.demo.example.com", "")
	frozen.Timeout = briefly
	if r := check(ctx, frozen, "hangs"); codes(r) != "hangs" {
		t.Errorf("frozen: %+v", r)
	}
	testkit.Must(t, errors.Join(server.Thaw(), server.Kill()))
	if r := Check(ctx, at("api-int.demo.example.com", "")); codes(r) != "refused" {
		t.Errorf("killed: %+v", r)
	}
}
