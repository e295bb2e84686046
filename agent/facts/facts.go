package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/resolvconf"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Nodes is the list of the cluster's nodes, as far as known.
type Nodes interface {
	// Run keeps the list current until ctx ends.
	Run(ctx context.Context) error
	// SetCluster sets the VIPs and networks of the cluster.
	SetCluster(*v1alpha1.ClusterConfig)
	// Current returns the current list; the zero value before the first.
	Current() nodelist.Snapshot
	// Routers returns the routers on this node; known is false before the first answer.
	Routers() (r nodelist.Routers, known bool)
	// Announce publishes the VRRP settings of this node to the others.
	Announce(text string)
	// Confirm asks the API servers anew, soon, whether the list is current.
	Confirm()
	// Changed holds a value after changes. It has one reader.
	Changed() <-chan struct{}
}

// Source collects the facts of a node. The fields are set before its first use.
type Source struct {
	// Name is the node's name in the API, Role its pool.
	Name, Role    string
	ClusterConfig string
	// Kept is the path of a copy of the last valid cluster.yaml, used after restarts;
	// empty for none.
	Kept string
	// Templates are paths of node templates, and of other files to watch.
	Templates []string
	// ResolvConf is the path of the file with the network's name servers; empty if they
	// are not needed.
	ResolvConf string
	// Nodes may be nil: then only the peers of cluster.yaml are known.
	Nodes Nodes
	Log   *slog.Logger

	mu      sync.Mutex
	cluster *v1alpha1.ClusterConfig // last valid one
	data    []byte                  // content of cluster; nil if from the copy
	kept    bool                    // data is in the copy
	problem string                  // of cluster.yaml
	reading logging.Transitions     // cluster.yaml
	storing logging.Transitions     // the copy
	naming  logging.Transitions     // names of interfaces
	ignored int                     // number of interfaces ignored for their names
}

// Facts holds the facts of a node.
type Facts struct {
	Cluster *v1alpha1.ClusterConfig
	Node    *v1alpha1.Node
	// Self is this node as its peers see it; the zero value while it is not listed.
	Self v1alpha1.Peer
	// Stale reports that no API server vouches for the list of nodes now.
	Stale bool
	// RemoteWorker reports that the node is in no network with a VIP (hard case 9).
	RemoteWorker bool
}

// Facts returns the current facts. While cluster.yaml is invalid the last valid one is
// used, if there is any, and Problem returns the reason.
func (s *Source) Facts() (*Facts, error) {
	cluster, choice, err := s.choose()
	if err != nil {
		return nil, err
	}
	node := &v1alpha1.Node{Name: s.Name, Role: s.Role, Interfaces: choice.Interfaces, NoIPv6: noIPv6()}
	var list nodelist.Snapshot
	if s.Nodes != nil {
		list = s.Nodes.Current()
		node.Labels = list.Self.Labels
		node.Listed = append(slices.Clone(list.Self.Addresses), list.Self.Elsewhere...)
		node.Unregistered = !list.Registered && s.Role != v1alpha1.RoleBootstrap
		node.BootstrapGone = list.Bootstrap.Gone
	}
	known := bootstraps(cluster.Spec.Peers, list.Bootstrap)
	node.Peers = merge(s.Name, choice.Own(), list.Peers, known)
	if node.Upstreams, err = s.upstreams(choice.Own(), nodeip.VIPs(&cluster.Spec)); err != nil {
		return nil, err
	}
	if err := node.Validate().Err(); err != nil {
		return nil, fmt.Errorf("facts of the node: %w", err)
	}
	return &Facts{Cluster: cluster, Node: node, Self: list.Self, Stale: list.Stale, RemoteWorker: choice.RemoteWorker}, nil
}

// Current returns the facts used by templates.
func (s *Source) Current() (*v1alpha1.ClusterConfig, *v1alpha1.Node, error) {
	f, err := s.Facts()
	if err != nil {
		return nil, nil, err
	}
	return f.Cluster, f.Node, nil
}

// upstreams returns the network's name servers other than this node (hard case 16); none
// without the file.
func (s *Source) upstreams(own, vips []netip.Addr) ([]netip.Addr, error) {
	if s.ResolvConf == "" {
		return nil, nil
	}
	data, err := os.ReadFile(s.ResolvConf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return resolvconf.Parse(data).Upstreams(own, vips), nil
}

// noIPv6 reports whether the kernel has IPv6 disabled (hard case 25), possibly only on
// loopback: binding fails in both cases.
func noIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return true
	}
	l.Close()
	return false
}
