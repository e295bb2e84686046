package nodes

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/templates/manifest"
)

// real is a real API server and a control-plane node that watches it with the
// credentials that its kubelet has.
type real struct {
	*host
	api *daemon.APIServer
}

func newReal(t *testing.T) real {
	api := daemon.NewAPIServer(t, "demo.example.com")
	r := real{newHost(t, api.CA, "master-0", "master", int(api.Addr.Port())), api}
	r.set("master-0", "192.0.2.10", masterLabels)
	r.set("worker-0", "192.0.2.20", `"node-role.kubernetes.io/worker":""`)
	return r
}

func (r real) set(name, addr, labels string) {
	r.t.Helper()
	r.api.Create("/api/v1/nodes", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%s}}}`, name, labels))
	r.move(name, addr)
}

// move changes a node's address as its kubelet does.
func (r real) move(name, addr string) {
	r.t.Helper()
	r.api.Patch("/api/v1/nodes/"+name+"/status", []byte(`{"status":{"addresses":[`+internal(addr)+`]}}`))
}

// grant applies the manifests with the agent's rights.
func (r real) grant() {
	r.t.Helper()
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	for _, m := range []struct{ name, collection string }{
		{manifest.ClusterRole, "clusterroles"}, {manifest.ClusterRoleBinding, "clusterrolebindings"},
	} {
		data, err := manifest.Render(m.name, manifest.Params{})
		if err != nil {
			r.t.Fatal(err)
		}
		r.api.Create(rbac+m.collection, data)
	}
}

// TestRealAPIServer goes through what happens to a node of a real API server, in
// one run because starting it takes seconds.
func TestRealAPIServer(t *testing.T) {
	r := newReal(t)
	w, stop := r.run()

	t.Run("HardCase22", func(t *testing.T) {
		await(t, r.log, "the refusal", func() bool { return r.log.lines("refuses to list nodes") == 1 })
		if s, ok := w.Current(); ok {
			t.Errorf("a snapshot without rights: %+v", s)
		}
		r.grant()
		r.awaitPeers(w, false, "worker-0=192.0.2.20")
		if s, _ := w.Current(); !s.Registered || s.Self.Role != "master" {
			t.Errorf("self: %+v", s)
		}
		for _, want := range []string{"user=system:node:master-0", "manifests/clusterrolebinding.yaml", "list and watch nodes again"} {
			await(t, r.log, want, func() bool { return r.log.lines(want) > 0 })
			if n := r.log.lines(want); n != 1 {
				t.Errorf("%d lines with %q, want 1:\n%s", n, want, r.log)
			}
		}
	})

	t.Run("HardCase15", func(t *testing.T) {
		r.move("worker-0", "192.0.2.21")
		r.awaitPeers(w, false, "worker-0=192.0.2.21")
	})

	t.Run("rotation", func(t *testing.T) {
		r.rotate()
		await(t, r.log, "the rotation", func() bool { return r.log.lines("credentials have rotated") == 1 })
		r.move("worker-0", "192.0.2.22")
		r.awaitPeers(w, false, "worker-0=192.0.2.22")
	})

	t.Run("HardCase05", func(t *testing.T) {
		peer := r.api.Replica("127.0.0.2")
		next := *r.opts.Cluster
		next.Spec.Peers = append(next.Spec.Peers, v1alpha1.Peer{Name: "master-1", Role: "master", Addresses: addrs("127.0.0.2")})
		w.SetCluster(&next)
		local := fmt.Sprintf("https://localhost:%d", r.api.Addr.Port())
		from := func(server string) {
			t.Helper()
			await(t, r.log, "reading from "+server, func() bool { return w.Server() == server })
		}
		r.api.Freeze() // nothing is closed, nothing comes
		from("https://" + peer.Addr.String())
		r.api.Thaw()
		from(local)
		r.api.Kill()
		from("https://" + peer.Addr.String())
		peer.Patch("/api/v1/nodes/worker-0/status", []byte(`{"status":{"addresses":[`+internal("192.0.2.23")+`]}}`))
		r.awaitPeers(w, false, "worker-0=192.0.2.23")
		r.api.Start()
		from(local)
		r.move("worker-0", "192.0.2.24")
		r.awaitPeers(w, false, "worker-0=192.0.2.24")
		peer.Kill()
		r.awaitPeers(w, false, "worker-0=192.0.2.24")
	})

	t.Run("HardCase19", func(t *testing.T) {
		r.api.Kill()
		r.awaitPeers(w, true, "worker-0=192.0.2.24")
		stop()
		w, stop = r.run()
		r.awaitPeers(w, true, "worker-0=192.0.2.24")
		r.api.Start()
		r.awaitPeers(w, false, "worker-0=192.0.2.24")
		r.api.Delete("/api/v1/nodes/worker-0")
		r.awaitPeers(w, false)
	})
	stop()

	t.Run("HardCase21", func(t *testing.T) { testRouters(t, r) })
}

// testRouters needs no rights of the agent's own: a node may read its own pods.
func testRouters(t *testing.T, r real) {
	const pods = "/api/v1/namespaces/openshift-ingress/pods"
	router := func(name, node, controller string, ready bool) {
		r.api.Create(pods, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{%q:%q}},
			"spec":{"nodeName":%q,"containers":[{"name":"router","image":"router"}]}}`, name, routerLabel, controller, node))
		r.api.Patch(pods+"/"+name+"/status", fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"%s"}]}}`,
			map[bool]string{true: "True", false: "False"}[ready]))
	}
	r.api.Create("/api/v1/namespaces", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: openshift-ingress}}"))
	r.set("worker-1", "192.0.2.31", "")
	router("elsewhere", "worker-1", "default", true)
	router("sharded", "master-0", "sharded", true)
	router("default", "master-0", "default", false)

	r.opts.RouterPods = true
	w, _ := r.run()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	routers := w.Routers(ctx)
	want := func(controllers string, stale bool) {
		t.Helper()
		var last Routers
		await(t, r.log, fmt.Sprintf("routers %s, stale %v", controllers, stale), func() bool {
			select {
			case last = <-routers:
			default:
			}
			return fmt.Sprint(last.Ready) == controllers && last.Stale == stale
		})
	}
	want("[sharded]", false)
	r.api.Patch(pods+"/default/status", []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	want("[default sharded]", false)
	r.api.Delete(pods + "/default")
	want("[sharded]", false)
	r.api.Kill()
	want("[sharded]", true)
	if n := r.log.lines("refuses"); n != 0 {
		t.Errorf("a node may not read its own pods:\n%s", r.log)
	}
	if _, err := os.Stat(r.saved); err != nil {
		t.Error(err)
	}
}
