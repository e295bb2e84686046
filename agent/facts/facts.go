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
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/resolvconf"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Nodes is the list of the cluster's nodes, as far as it is known.
type Nodes interface {
	// Run keeps the list current until ctx ends.
	Run(ctx context.Context) error
	// SetCluster tells what the VIPs and networks of the cluster are from now on.
	SetCluster(*v1alpha1.ClusterConfig)
	// Current is what is known now; the zero value while nothing is.
	Current() nodes.Snapshot
	// Routers are the routers on this node; known is false while nobody can say.
	Routers() (r nodes.Routers, known bool)
	// Announce makes the other nodes know what this one says of its VRRP settings.
	Announce(text string)
	// Changed has a word in it after any of that changed. It has one reader.
	Changed() <-chan struct{}
}

// Source finds the facts of a node. The fields are set before its first use.
type Source struct {
	// Name and Role are the node's: as the API knows it, and its pool.
	Name, Role string
	// ClusterConfig is the path of cluster.yaml.
	ClusterConfig string
	// Kept is the path of a copy of the last good cluster.yaml, which counts over
	// restarts; empty for none.
	Kept string
	// Templates are paths of node templates, and of other files that Watch is to
	// watch.
	Templates []string
	// ResolvConf is the path of the file that names the network's name servers;
	// empty where nobody asks for them.
	ResolvConf string
	// Nodes may be nil: then the peers of cluster.yaml are all.
	Nodes Nodes
	Log   *slog.Logger

	mu      sync.Mutex
	cluster *v1alpha1.ClusterConfig // the last good one
	data    []byte                  // that it was read from, nil for the copy
	kept    bool                    // data is in the copy
	problem string                  // with cluster.yaml
	reading logging.Transitions     // cluster.yaml
	keeping logging.Transitions     // the copy
	naming  logging.Transitions     // of interfaces
	ignored int                     // interfaces, for their names
}

// Facts are those of a node.
type Facts struct {
	Cluster *v1alpha1.ClusterConfig
	Node    *v1alpha1.Node
	// Self is this node as the others see it; the zero value while it is not listed.
	Self v1alpha1.Peer
	// Stale says that no API server vouches for the list of nodes now.
	Stale bool
	// RemoteWorker says that the node is in no network with a VIP (hard case 9).
	RemoteWorker bool
}

// Facts returns the facts as they are now. While cluster.yaml is not right the
// last good one counts, if there ever was any, and Problem says why.
func (s *Source) Facts() (*Facts, error) {
	cluster, choice, err := s.choose()
	if err != nil {
		return nil, err
	}
	node := &v1alpha1.Node{Name: s.Name, Role: s.Role, Interfaces: choice.Interfaces, NoIPv6: noIPv6()}
	var list nodes.Snapshot
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

// Current returns those of the Facts that a template is executed with.
func (s *Source) Current() (*v1alpha1.ClusterConfig, *v1alpha1.Node, error) {
	f, err := s.Facts()
	if err != nil {
		return nil, nil, err
	}
	return f.Cluster, f.Node, nil
}

// upstreams are the network's name servers that are somebody else (hard case
// 16); none while the file is not there.
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

// noIPv6 says whether the kernel has IPv6 switched off (hard case 25), which may
// also be for loopback alone: then binding to it fails just so.
func noIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return true
	}
	l.Close()
	return false
}
