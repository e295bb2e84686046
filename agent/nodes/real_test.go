package nodes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// real is a real API server and a control-plane node that watches it with the
// credentials that its kubelet has.
type real struct {
	*host
	cluster
}

func newReal(t *testing.T) real {
	api := daemon.NewAPIServer(t, "demo.example.com")
	r := real{newHost(t, api), cluster{api}}
	r.set("master-0", "192.0.2.10", masterLabels)
	r.set("worker-0", "192.0.2.20", `"node-role.kubernetes.io/worker":""`)
	return r
}

// grant applies the manifests with the agent's rights to read nodes.
func (r real) grant() {
	r.t.Helper()
	r.apply(manifest.ClusterRole, "clusterroles")
	r.apply(manifest.ClusterRoleBinding, "clusterrolebindings")
}

// apply makes an object of RBAC from a rendered manifest.
func (r real) apply(name, collection string) {
	r.t.Helper()
	data, err := manifest.Render(name, manifest.Params{})
	testkit.Must(r.t, err)
	r.api.Create("/apis/rbac.authorization.k8s.io/v1/"+collection, data)
}

// TestRealAPIServer holds what depends on the rights and the selectors of a real API server, in
// one run because starting the server takes seconds.
func TestRealAPIServer(t *testing.T) {
	testkit.Live(t)
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
			r.said(want, 1)
		}
	})

	t.Run("Announce", func(t *testing.T) { testAnnounce(t, r, w) })
	r.api.Delete("/api/v1/nodes/worker-0")
	r.awaitPeers(w, false)
	stop()

	t.Run("HardCase21", func(t *testing.T) { testRouters(t, r) })
	r.api.Start()
	t.Run("HardCase13", func(t *testing.T) { testBootstrap(t, r) })
	t.Run("control plane alone", func(t *testing.T) { testControlPlane(t, r) })
}

// testControlPlane: a node that watches the control plane alone gets no other Nodes, and those
// of the control plane with either label.
func testControlPlane(t *testing.T, r real) {
	r.opts.Bootstrap, r.opts.RouterPods, r.opts.ControlPlane = false, false, true
	r.opts.StateFile = ""
	w, stop := r.run()
	defer stop()
	r.awaitPeers(w, false)
	r.set("master-1", "192.0.2.11", `"node-role.kubernetes.io/master":""`)
	r.set("master-2", "192.0.2.12", `"node-role.kubernetes.io/control-plane":""`)
	r.set("worker-3", "192.0.2.33", `"node-role.kubernetes.io/worker":""`)
	r.awaitPeers(w, false, "master-1=192.0.2.11", "master-2=192.0.2.12")
	label := func(name, labels string) {
		r.api.Patch("/api/v1/nodes/"+name, []byte(`{"metadata":{"labels":{`+labels+`}}}`))
	}
	label("master-2", `"node-role.kubernetes.io/control-plane":null`)
	r.awaitPeers(w, false, "master-1=192.0.2.11")
	label("master-1", `"node-role.kubernetes.io/control-plane":""`)
	label("master-2", `"node-role.kubernetes.io/master":""`)
	r.awaitPeers(w, false, "master-1=192.0.2.11", "master-2=192.0.2.12")
	if s, _ := w.Current(); !s.Registered || s.Self.Name != "master-0" {
		t.Errorf("self: %+v", s.Self)
	}
}

// testAnnounce: a node's credentials allow an annotation on its own Node, and on no other. All
// nodes receive it, and it is restored when it is removed.
func testAnnounce(t *testing.T, r real, w *Watcher) {
	said := func(want string) {
		t.Helper()
		await(t, r.log, "the word "+want, func() bool {
			s, _ := w.Current()
			return slices.ContainsFunc(s.Updates, func(u NodeUpdate) bool { return u.Name == "master-0" && u.VRRP == want })
		})
	}
	w.Announce(`{"running":"classic"}`)
	said(`{"running":"classic"}`)
	w.Announce(`{"running":"fast"}`)
	said(`{"running":"fast"}`)
	r.api.Patch("/api/v1/nodes/master-0", []byte(`{"metadata":{"annotations":{"vipgen.io/vrrp":null}}}`))
	said(`{"running":"fast"}`)
	other := newAnnouncer(w.client, "worker-0")
	if err := other.patch(t.Context(), "x"); !apierrors.IsForbidden(err) {
		t.Errorf("saying something on another node's Node: %v", err)
	}
	testkit.Equal(t, 0, r.log.lines("cannot announce"))
}

// testBootstrap starts without the rights for the one ConfigMap, which does not keep the job
// from watching nodes.
func testBootstrap(t *testing.T, r real) {
	const (
		configMaps = "/api/v1/namespaces/openshift-etcd/configmaps"
		role       = "namespaces/openshift-etcd/role"
	)
	r.api.Create("/api/v1/namespaces", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: openshift-etcd}}"))
	annotate := func(value string) {
		t.Helper()
		r.api.Patch(configMaps+"/etcd-endpoints", fmt.Appendf(nil,
			"{metadata: {annotations: {alpha.installer.openshift.io/etcd-bootstrap: %s}}}", value))
	}
	r.opts.Bootstrap = true
	w, stop := r.run()
	want := func(b Bootstrap) {
		t.Helper()
		await(t, r.log, fmt.Sprintf("bootstrap %+v", b), func() bool { s, _ := w.Current(); return s.Bootstrap == b })
	}
	await(t, r.log, "the refusal", func() bool { return r.log.lines("refuses to list configmaps") == 1 })
	r.set("worker-2", "192.0.2.32", "")
	r.awaitPeers(w, false, "worker-1=192.0.2.31", "worker-2=192.0.2.32")
	r.apply(manifest.Role, role+"s")
	r.apply(manifest.RoleBinding, role+"bindings")
	await(t, r.log, "the permission", func() bool { return r.log.lines("list and watch configmaps again") == 1 })
	for _, words := range []string{"manifests/rolebinding.yaml", "resourceNames [etcd-endpoints]"} {
		r.said(words, 1)
	}

	want(Bootstrap{}) // without a ConfigMap
	r.api.Create(configMaps, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`))
	r.api.Create(configMaps, []byte(`{apiVersion: v1, kind: ConfigMap, data: {a: 192.0.2.10},
		metadata: {name: etcd-endpoints, annotations: {alpha.installer.openshift.io/etcd-bootstrap: 192.0.2.9}}}`))
	there, gone := Bootstrap{Address: testkit.Addrs("192.0.2.9")[0]}, Bootstrap{Address: testkit.Addrs("192.0.2.9")[0], Gone: true}
	want(there)
	annotate("somewhere")
	await(t, r.log, "the warning", func() bool { return r.log.lines("annotation=somewhere") == 1 })
	want(there)

	annotate("null")
	want(gone)
	r.api.Delete(configMaps + "/etcd-endpoints")
	stop()
	w, _ = r.run() // which knows from disk that it is gone
	r.awaitPeers(w, false, "worker-1=192.0.2.31", "worker-2=192.0.2.32")
	want(gone)
}

// testRouters needs no additional rights: a node may read its own pods.
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
	w, stop := r.run()
	defer stop() // the state on disk belongs to one Watcher
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
	testkit.Equal(t, 0, r.log.lines("refuses"))
	if _, err := os.Stat(r.saved); err != nil {
		t.Error(err)
	}
}
