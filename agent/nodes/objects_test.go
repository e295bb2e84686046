package nodes

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/internal/testkit"
)

// newWatched makes a cluster with this node, whose API server is a replica.
func newWatched(t *testing.T) (cluster, *host) {
	c := newCluster(t)
	c.set("master-0", "192.0.2.10", masterLabels)
	return c, newHost(t, c.api.Replica("127.0.0.1"))
}

func (c cluster) namespace(name string) {
	c.api.Create("/api/v1/namespaces", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
}

// A node that watches the control plane alone gets no other Nodes, and those of the control plane
// with either label.
func TestControlPlaneAlone(t *testing.T) {
	c, h := newWatched(t)
	h.opts.ControlPlane = true
	w, _ := h.run()
	h.awaitPeers(w, false)
	c.set("master-1", "192.0.2.11", `"node-role.kubernetes.io/master":""`)
	c.set("master-2", "192.0.2.12", `"node-role.kubernetes.io/control-plane":""`)
	c.set("worker-3", "192.0.2.33", `"node-role.kubernetes.io/worker":""`)
	h.awaitPeers(w, false, "master-1=192.0.2.11", "master-2=192.0.2.12")
	label := func(name, labels string) {
		c.api.Patch("/api/v1/nodes/"+name, []byte(`{"metadata":{"labels":{`+labels+`}}}`))
	}
	label("master-2", `"node-role.kubernetes.io/control-plane":null`)
	h.awaitPeers(w, false, "master-1=192.0.2.11")
	label("master-1", `"node-role.kubernetes.io/control-plane":""`)
	label("master-2", `"node-role.kubernetes.io/master":""`)
	h.awaitPeers(w, false, "master-1=192.0.2.11", "master-2=192.0.2.12")
	if s, _ := w.Current(); !s.Registered || s.Self.Name != "master-0" {
		t.Errorf("self: %+v", s.Self)
	}
}

// A node's credentials allow an annotation on its own Node, and on no other. All nodes receive it,
// and it is restored when it is removed.
func TestAnnounce(t *testing.T) {
	c, h := newWatched(t)
	c.set("worker-0", "192.0.2.20", "")
	w, _ := h.run()
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	said := func(want string) {
		t.Helper()
		await(t, h.log, "the word "+want, func() bool {
			s, _ := w.Current()
			return slices.ContainsFunc(s.Updates, func(u nodelist.NodeUpdate) bool { return u.Name == "master-0" && u.VRRP == want })
		})
	}
	w.Announce(`{"running":"classic"}`)
	said(`{"running":"classic"}`)
	w.Announce(`{"running":"fast"}`)
	said(`{"running":"fast"}`)
	c.api.Patch("/api/v1/nodes/master-0", []byte(`{"metadata":{"annotations":{"vipgen.io/vrrp":null}}}`))
	said(`{"running":"fast"}`)
	other := newAnnouncer(w.client, "worker-0")
	if err := other.patch(t.Context(), "x"); !apierrors.IsForbidden(err) {
		t.Errorf("saying something on another node's Node: %v", err)
	}
	testkit.Equal(t, 0, h.log.lines("cannot announce"))
}

// TestBootstrapWatched follows the annotation of the one ConfigMap, also over a restart.
func TestBootstrapWatched(t *testing.T) {
	const configMaps = "/api/v1/namespaces/openshift-etcd/configmaps"
	c, h := newWatched(t)
	h.opts.Bootstrap = true
	w, stop := h.run()
	want := func(b nodelist.Bootstrap) {
		t.Helper()
		await(t, h.log, fmt.Sprintf("bootstrap %+v", b), func() bool { s, _ := w.Current(); return s.Bootstrap == b })
	}
	annotate := func(value string) {
		t.Helper()
		c.api.Patch(configMaps+"/etcd-endpoints", fmt.Appendf(nil, `{"metadata":{"annotations":{"alpha.installer.openshift.io/etcd-bootstrap":%s}}}`, value))
	}
	h.awaitPeers(w, false)
	want(nodelist.Bootstrap{}) // without a ConfigMap
	c.namespace("openshift-etcd")
	c.api.Create(configMaps, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`))
	c.api.Create(configMaps, []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"192.0.2.10"},
		"metadata":{"name":"etcd-endpoints","annotations":{"alpha.installer.openshift.io/etcd-bootstrap":"192.0.2.9"}}}`))
	there, gone := nodelist.Bootstrap{Address: testkit.Addrs("192.0.2.9")[0]}, nodelist.Bootstrap{Address: testkit.Addrs("192.0.2.9")[0], Gone: true}
	want(there)
	annotate(`"somewhere"`)
	await(t, h.log, "the warning", func() bool { return h.log.lines("annotation=somewhere") == 1 })
	want(there)
	annotate("null")
	want(gone)
	c.api.Delete(configMaps + "/etcd-endpoints")
	stop()
	w, _ = h.run() // which knows from disk that it is gone
	h.awaitPeers(w, false)
	want(gone)
}

// A node reads its own router pods.
func TestRoutersWatched(t *testing.T) {
	c, h := newWatched(t)
	const pods = "/api/v1/namespaces/openshift-ingress/pods"
	router := func(name, node, controller string, ready bool) {
		c.api.Create(pods, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{%q:%q}},
			"spec":{"nodeName":%q,"containers":[{"name":"router","image":"router"}]}}`, name, routerLabel, controller, node))
		c.api.Patch(pods+"/"+name+"/status", fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"%s"}]}}`,
			map[bool]string{true: "True", false: "False"}[ready]))
	}
	c.namespace("openshift-ingress")
	router("elsewhere", "worker-1", "default", true)
	router("sharded", "master-0", "sharded", true)
	router("default", "master-0", "default", false)

	h.opts.RouterPods = true
	w, _ := h.run()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	routers := w.Routers(ctx)
	want := func(controllers string, stale bool) {
		t.Helper()
		var last nodelist.Routers
		await(t, h.log, fmt.Sprintf("routers %s, stale %v", controllers, stale), func() bool {
			select {
			case last = <-routers:
			default:
			}
			return fmt.Sprint(last.Ready) == controllers && last.Stale == stale
		})
	}
	want("[sharded]", false)
	c.api.Patch(pods+"/default/status", []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	want("[default sharded]", false)
	c.api.Delete(pods + "/default")
	want("[sharded]", false)
	h.api.Kill()
	want("[sharded]", true)
}
