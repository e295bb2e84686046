package importer

import (
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/source"
)

// Node holds the addresses of a Node object.
type Node struct {
	Name string
	// Addresses are kubelet's (InternalIP), Host all of the host, with their networks, as
	// OVN-Kubernetes lists them.
	Addresses []netip.Addr
	Host      []netip.Prefix
	// RemoteWorker is set where the Node has the label of remote workers (hard case 9).
	RemoteWorker bool
	labels       map[string]string
	at           Place
}

func (i *importer) addNode(doc *source.Document, n *nodeObject, host []netip.Prefix) {
	_, remote := n.Metadata.Labels[v1alpha1.RemoteWorkerLabel]
	node := Node{Name: n.Metadata.Name, Host: host, RemoteWorker: remote, labels: n.Metadata.Labels, at: position(doc, "metadata.labels")}
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil && a.Type == "InternalIP" {
			node.Addresses = append(node.Addresses, addr)
		}
	}
	i.seen = append(i.seen, node)
}

// settleRemoteWorkers carries labelled Nodes over: on bare metal vipgen-agent labels nodes by
// the operator's rule, on other platforms neither of them does.
func (i *importer) settleRemoteWorkers(platform string) {
	var names []string
	var at Place
	for _, n := range i.seen {
		switch {
		case !n.RemoteWorker:
		case platform == "baremetal":
			if len(names) == 0 {
				at = n.at
			}
			names = append(names, n.Name)
		default:
			i.lose(n.at, "the label "+v1alpha1.RemoteWorkerLabel+" of a Node", "the label stays on the Node, and its keepalived runs: the operator finds remote workers on bare metal alone, and so does vipgen")
		}
	}
	if len(names) > 0 {
		i.carry("remote workers", strings.Join(lists.Map(names, shown), ", "), at)
	}
}
