package kubeapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// follower is a real informer of client-go that watches the nodes, and prefers protobuf, as
// controllers do.
type follower struct {
	t        testing.TB
	informer cache.SharedIndexInformer
}

// nodesClient returns client-go's client, on a node.
func (p *pair) nodesClient(node int) *rest.RESTClient {
	p.t.Helper()
	scheme := runtime.NewScheme()
	p.must(corev1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	client := p.client(node, "system:node:master-0", nodeGroup)
	client.Timeout = 0
	r, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: "https://" + internalName(domain) + ":6443", APIPath: "/api", QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON, ContentType: runtime.ContentTypeProtobuf,
		},
	}, client)
	p.must(err)
	return r
}

// follow starts a follower, which reads from the server of a node.
func (p *pair) follow(node int) *follower {
	p.t.Helper()
	lw := cache.NewListWatchFromClient(p.nodesClient(node), "nodes", "", fields.Everything())
	f := &follower{p.t, cache.NewSharedIndexInformer(lw, &corev1.Node{}, 0, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.informer.RunWithContext(ctx)
	}()
	p.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

// has waits until the informer has these nodes, each as name=address.
func (f *follower) has(want ...string) {
	f.t.Helper()
	testkit.Await(f.t, fmt.Sprintf("the informer to have %q", want), func() bool {
		got := map[string]bool{}
		for _, o := range f.informer.GetStore().List() {
			n := o.(*corev1.Node)
			address := ""
			if len(n.Status.Addresses) > 0 {
				address = n.Status.Addresses[0].Address
			}
			got[n.Name+"="+address] = true
		}
		return slices.Equal(slices.Sorted(maps.Keys(got)), want)
	})
}

// setNode creates a node, or changes its address.
func (p *pair) setNode(name, addr string) {
	p.t.Helper()
	err := p.Create(p.t.Context(), "/api/v1/nodes", fmt.Appendf(nil, "{apiVersion: v1, kind: Node, metadata: {name: %s}}", name))
	if err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		p.t.Fatal(err)
	}
	p.must(p.Patch(p.t.Context(), "/api/v1/nodes/"+name+"/status",
		fmt.Appendf(nil, "{status: {addresses: [{type: InternalIP, address: %s}]}}", addr)))
}

// TestInformer walks through faults of the API servers under an informer.
func TestInformer(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	p.setNode("a", "192.0.2.20")
	f := p.follow(0)
	f.has("a=192.0.2.20")
	p.setNode("b", "192.0.2.21")
	f.has("a=192.0.2.20", "b=192.0.2.21")
	p.must(p.Delete(t.Context(), "/api/v1/nodes/a"))
	f.has("b=192.0.2.21")

	p.must(p.servers[0].Kill())
	p.setNode("b", "192.0.2.22") // by the other server
	p.must(p.servers[0].Launch())
	f.has("b=192.0.2.22")
	p.setNode("c", "192.0.2.23")
	f.has("b=192.0.2.22", "c=192.0.2.23")

	p.must(p.servers[0].Freeze())
	p.setNode("c", "192.0.2.24")
	p.must(p.servers[0].Thaw())
	f.has("b=192.0.2.22", "c=192.0.2.24")
}

// A client that missed more changes than are kept gets an error, and an informer lists again.
func TestTooFarBehind(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	store := p.Plane.(*standIn).store
	store.mu.Lock()
	store.history = 5
	store.mu.Unlock()
	p.setNode("a", "192.0.2.20")
	f := p.follow(0)
	f.has("a=192.0.2.20")
	was := f.informer.LastSyncResourceVersion()
	p.must(p.servers[0].Kill())
	for i := range 10 {
		p.setNode("b", fmt.Sprintf("192.0.2.%d", 30+i))
	}
	p.must(p.Delete(t.Context(), "/api/v1/nodes/a"))
	p.must(p.servers[0].Launch())
	f.has("b=192.0.2.39")

	w, err := p.nodesClient(1).Get().Resource("nodes").
		VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: was}, metav1.ParameterCodec).Watch(t.Context())
	p.must(err)
	defer w.Stop()
	e := <-w.ResultChan()
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("watching from %s on: %s, %v", was, e.Type, err)
	}
}
