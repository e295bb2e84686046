package lab

import (
	"context"
	"errors"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
)

// Overwrite writes unusual content into the node's Node, as its kubelet could: additional labels
// and annotations, other addresses, or no role. restore writes the previous content back. Both wait
// until an API server runs.
func (n *Node) Overwrite(ctx context.Context, odd attack.Node) (restore func(context.Context) error, err error) {
	patch := func(ctx context.Context, p object) error {
		return Confirm(ctx, "a Node", func() error { return n.cluster.API.Patch(ctx, n.object()+"/status", p.json()) })
	}
	restore = func(ctx context.Context) error {
		labels, annotations := object{}, object{}
		for k := range odd.Labels {
			labels[k] = nil
		}
		for k, v := range n.labels() {
			labels[k] = v
		}
		for k := range odd.Annotations {
			annotations[k] = nil
		}
		gone := object{"metadata": object{"labels": labels, "annotations": annotations}, "status": object{"nodeInfo": nil}}
		return errors.Join(patch(ctx, gone), Confirm(ctx, "addresses", func() error { return n.report(ctx) }))
	}
	meta, status := object{}, object{"nodeInfo": object{"kubeletVersion": odd.KubeletVersion}}
	// A null in a merge patch would remove the whole map.
	if odd.Labels != nil {
		meta["labels"] = odd.Labels
	}
	if odd.NoRole {
		labels := object{}
		for k := range n.labels() {
			if strings.HasPrefix(k, v1alpha1.RoleLabel("")) {
				labels[k] = nil
			}
		}
		meta["labels"] = labels
	}
	if odd.Annotations != nil {
		meta["annotations"] = odd.Annotations
	}
	if odd.Addresses != nil {
		status["addresses"] = odd.Addresses
	}
	return restore, patch(ctx, object{"metadata": meta, "status": status})
}

// object returns the path of the node's Node.
func (n *Node) object() string { return "/api/v1/nodes/" + n.Name }

// Forget deletes the node's Node and replaces its credentials by expired ones, as for a node that
// left the cluster for good. It waits until an API server runs.
func (n *Node) Forget(ctx context.Context) error {
	err := Confirm(ctx, "a Node that goes", func() error { return n.cluster.API.Delete(ctx, n.object()) })
	return errors.Join(err, kubeapi.ExpireKubeconfig(n.Path("/"), kubeletDir, n.cluster.API.CA(), n.Name))
}

// Readmit undoes Forget. It waits until an API server runs.
func (n *Node) Readmit(ctx context.Context) error {
	return errors.Join(n.credentials(), Confirm(ctx, "a Node", func() error { return n.cluster.register(ctx, n) }))
}
