package lab

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/lab/testbed/standin"
	"github.com/vipgen/vipgen/templates/manifest"
)

// etcdNamespace has the ConfigMap with the address of the bootstrap.
const etcdNamespace = "openshift-etcd"

// object is an API object.
type object map[string]any

func (o object) json() []byte {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // only strings and maps
	}
	return data
}

// startAPI starts the API servers and creates the objects that an installer creates.
func (c *Cluster) startAPI(ctx context.Context) error {
	serving := slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return n.API == nil })
	if err := each(serving, func(n *Node) error { return errors.Join(n.API.Launch(), n.API.AwaitReady(ctx)) }); err != nil {
		return err
	}
	for _, name := range []string{"openshift-ingress", etcdNamespace} {
		if err := c.API.Create(ctx, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}}.json()); err != nil {
			return err
		}
	}
	if err := c.grant(ctx); err != nil {
		return err
	}
	etcd := object{"name": "etcd-endpoints"}
	if b := c.Bootstrap(); b != nil {
		etcd["annotations"] = object{bootstrapAnnotation: b.Address().String()}
	}
	err := c.API.Create(ctx, "/api/v1/namespaces/"+etcdNamespace+"/configmaps", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": etcd}.json())
	for _, n := range c.Nodes() {
		if n.Role != v1alpha1.RoleBootstrap { // the bootstrap host has no Node
			err = errors.Join(err, c.register(ctx, n))
		}
	}
	return err
}

// bootstrapAnnotation holds the address of the bootstrap.
const bootstrapAnnotation = "alpha.installer.openshift.io/etcd-bootstrap"

// grants maps kinds of the rendered RBAC objects to their API paths.
var grants = map[string]string{
	manifest.ClusterRole:        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	manifest.ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	manifest.Role:               "/apis/rbac.authorization.k8s.io/v1/namespaces/" + etcdNamespace + "/roles",
	manifest.RoleBinding:        "/apis/rbac.authorization.k8s.io/v1/namespaces/" + etcdNamespace + "/rolebindings",
}

// grant creates the rendered RBAC objects, or only the named ones.
func (c *Cluster) grant(ctx context.Context, names ...string) error {
	all, err := c.Rendered().Manifests()
	if err != nil {
		return err
	}
	for _, m := range all {
		path, ok := grants[m.Name]
		if !ok || len(names) > 0 && !slices.Contains(names, m.Name) {
			continue // only for operators, which a lab has not
		}
		if err := c.API.Create(ctx, path, m.Contents); err != nil {
			return err
		}
	}
	return nil
}

// register creates the node's Node, as its kubelet does.
func (c *Cluster) register(ctx context.Context, n *Node) error {
	node := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": n.Name, "labels": n.labels()}}
	// An earlier attempt may have created it, and lost the answer.
	if err := c.API.Create(ctx, "/api/v1/nodes", node.json()); err != nil && !errors.Is(err, kubeapi.ErrExists) {
		return err
	}
	return n.report(ctx)
}

// labels returns the labels that the installer and the pool give to the node.
func (n *Node) labels() map[string]string {
	spec := n.cluster.Spec()
	out := spec.ImpliedLabels(n.Role)
	for _, g := range spec.Groups {
		if g.Role == v1alpha1.GroupIngress && spec.Hosts(&g, n.Role, nil) {
			maps.Copy(out, g.NodeSelector)
		}
	}
	return out
}

// report writes the node's addresses into its status: one of each family, as kubelet does. If it
// has more, OVN-Kubernetes' annotation lists them.
func (n *Node) report(ctx context.Context) error {
	var list []object
	var all []string
	have := map[bool]bool{} // families, by Is4
	for _, a := range n.OwnAddresses() {
		if family := a.Addr().Is4(); !have[family] {
			have[family] = true
			list = append(list, object{"type": "InternalIP", "address": a.Addr().String()})
		}
		all = append(all, a.String())
	}
	patch := object{"status": object{"addresses": list}}
	if len(all) > len(list) {
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		patch["metadata"] = object{"annotations": object{"k8s.ovn.org/host-cidrs": string(text)}}
	}
	return n.cluster.API.Patch(ctx, "/api/v1/nodes/"+n.Name+"/status", patch.json())
}

// Renumber replaces the node's addresses, as a network with new leases does, and reports them once
// an API server runs.
func (n *Node) Renumber(ctx context.Context, fresh []netip.Prefix) error {
	old := n.OwnAddresses()
	// In this order: the kernel removes the other addresses of a network with the first one.
	for _, a := range old {
		if err := n.Run(nil, "ip", "address", "delete", a.String(), "dev", n.Link); err != nil {
			return err
		}
	}
	for _, a := range fresh {
		if err := n.AddAddress(n.Link, a); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.addresses = fresh
	n.mu.Unlock()
	if n.API != nil {
		n.API.SetAddr(n.Address())
	}
	if err := n.configureAddress(ctx); err != nil {
		return err
	}
	return Confirm(ctx, "other addresses", func() error { return n.report(ctx) })
}

// routerReplicas is the number of routers of each ingress controller, OpenShift's default.
const routerReplicas = 2

// placeRouters starts routers where a cluster would schedule them: two of each ingress controller,
// on nodes that may host it and have no router of another one, since all use the same ports. Each
// controller gets its first router before any gets a second.
func (c *Cluster) placeRouters(ctx context.Context) error {
	for range routerReplicas {
		for _, g := range c.Spec().Groups {
			if g.Role != v1alpha1.GroupIngress {
				continue
			}
			free := slices.IndexFunc(c.Nodes(), func(n *Node) bool { return c.Spec().Hosts(&g, n.Role, nil) && !n.routes() })
			if free < 0 {
				continue
			}
			if err := c.Nodes()[free].PutRouter(ctx, g.Controller, g.HealthPort); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// routerLabel holds the ingress controller of a router pod.
	routerLabel = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	routerPods  = "/api/v1/namespaces/openshift-ingress/pods"
)

func (n *Node) routerPod(controller string) string { return "router-" + controller + "-" + n.Name }

// Confirm calls do until an API server has answered; what names the change in errors.
func Confirm(ctx context.Context, what string, do func() error) error {
	return Await(ctx, "an API server that confirms "+what, func() (bool, error) {
		err := do()
		if errors.Is(err, kubeapi.ErrNoServer) || errors.Is(err, context.DeadlineExceeded) {
			return false, nil
		}
		return err == nil, err
	})
}

// PutRouter starts a router of an ingress controller on the node: it creates the pod object, starts
// a stand-in, and sets the pod ready. It waits until an API server runs.
func (n *Node) PutRouter(ctx context.Context, controller string, healthPort int) error {
	if err := n.scheduleRouter(ctx, controller); err != nil {
		return err
	}
	return n.runRouter(ctx, controller, healthPort)
}

// scheduleRouter creates the pod object of a router, from which kubelet would start it.
func (n *Node) scheduleRouter(ctx context.Context, controller string) error {
	name := n.routerPod(controller)
	api := n.cluster.API
	pod := object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "namespace": "openshift-ingress", "labels": object{routerLabel: controller}},
		"spec":     object{"nodeName": n.Name, "hostNetwork": true, "containers": []object{{"name": "router", "image": "router"}}},
	}
	return Confirm(ctx, "a router", func() error { return api.Create(ctx, routerPods, pod.json()) })
}

// runRouter starts the stand-in of a router and sets its pod ready.
func (n *Node) runRouter(ctx context.Context, controller string, healthPort int) error {
	s, err := standin.NewRouter(n.Node, controller, healthPort)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.routers[controller] = s
	n.mu.Unlock()
	return Confirm(ctx, "a router", func() error { return n.RouterReady(ctx, controller, true) })
}

// RouterReady sets the ready condition of a router's pod.
func (n *Node) RouterReady(ctx context.Context, controller string, ready bool) error {
	status := "False"
	if ready {
		status = "True"
	}
	return n.cluster.API.Patch(ctx, routerPods+"/"+n.routerPod(controller)+"/status",
		object{"status": object{"conditions": []object{{"type": "Ready", "status": status}}}}.json())
}

// RemoveRouter stops a router and deletes its pod object. It waits until an API server runs.
func (n *Node) RemoveRouter(ctx context.Context, controller string) error {
	n.mu.Lock()
	s := n.routers[controller]
	delete(n.routers, controller)
	n.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%s has no router of the ingress controller %q", n.Name, controller)
	}
	return errors.Join(s.Close(), Confirm(ctx, "a router", func() error {
		return n.cluster.API.Delete(ctx, routerPods+"/"+n.routerPod(controller))
	}))
}

// routes reports whether the node has a router of any ingress controller.
func (n *Node) routes() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.routers) > 0
}

// controllers returns the ingress controllers with a router on the node.
func (n *Node) controllers() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return sortedKeys(n.routers)
}

// Router returns the stand-in for a router on the node, nil if there is none.
func (n *Node) Router(controller string) *standin.Service {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.routers[controller]
}

// EndBootstrap removes the bootstrap from the cluster as the installer does: it leaves etcd, and
// its API server shuts down gracefully. Its keepalived releases the API VIP then.
func (c *Cluster) EndBootstrap(ctx context.Context) error {
	b := c.Bootstrap()
	if b == nil {
		return errors.New("the lab has no bootstrap host")
	}
	gone := object{"metadata": object{"annotations": object{bootstrapAnnotation: nil}}}
	if err := c.API.Patch(ctx, "/api/v1/namespaces/"+etcdNamespace+"/configmaps/etcd-endpoints", gone.json()); err != nil {
		return err
	}
	return b.API.Stop(ctx)
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
