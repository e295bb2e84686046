package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/resolvconf"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Nodes is the list of the cluster's nodes, as far as it is known.
type Nodes interface {
	// Current returns all other nodes, whether this one is in the cluster's list,
	// and its labels; nil labels are not known.
	Current() (peers []v1alpha1.Peer, registered bool, labels map[string]string)
	// Changed says that Current may have changed. It has one reader.
	Changed() <-chan struct{}
}

// Source finds the facts of a node. The fields are set before its first use.
type Source struct {
	// Name and Role are the node's: as the API knows it, and its pool.
	Name, Role string
	// ClusterConfig is the path of cluster.yaml.
	ClusterConfig string
	// Templates are paths of node templates, for Watch.
	Templates []string
	// ResolvConf is the path of the file that names the network's name servers;
	// empty where nobody asks for them.
	ResolvConf string
	// Nodes may be nil: then the peers of cluster.yaml are all.
	Nodes Nodes
	Log   *slog.Logger

	mu      sync.Mutex
	cluster *v1alpha1.ClusterConfig // the last good one
	problem string
}

// Current returns the facts as they are now. While cluster.yaml is not right the
// last good one counts, if there was any since the start, and Problem says why.
func (s *Source) Current() (*v1alpha1.ClusterConfig, *v1alpha1.Node, error) {
	cluster, err := s.loadCluster()
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := nodeip.Read()
	if err != nil {
		return nil, nil, err
	}
	choice := nodeip.Choose(snapshot, &cluster.Spec)
	node := &v1alpha1.Node{Name: s.Name, Role: s.Role, Interfaces: choice.Interfaces, NoIPv6: noIPv6()}
	var peers []v1alpha1.Peer
	if s.Nodes != nil {
		var registered bool
		peers, registered, node.Labels = s.Nodes.Current()
		node.Unregistered = !registered && s.Role != v1alpha1.RoleBootstrap
	}
	node.Peers = merge(cluster.Spec.Peers, peers, choice.Own())
	if node.Upstreams, err = s.upstreams(choice.Own(), nodeip.VIPs(&cluster.Spec)); err != nil {
		return nil, nil, err
	}
	if err := node.Validate().Err(); err != nil {
		return nil, nil, fmt.Errorf("facts of the node: %w", err)
	}
	return cluster, node, nil
}

// Problem says what is wrong with cluster.yaml; nothing if it is right.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

func (s *Source) loadCluster() (*v1alpha1.ClusterConfig, error) {
	cluster, err := readCluster(s.ClusterConfig)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		// The same value for the same content, so that a change is seen.
		if s.problem = ""; !reflect.DeepEqual(cluster, s.cluster) {
			s.cluster = cluster
		}
		return s.cluster, nil
	}
	if text := err.Error(); text != s.problem {
		s.problem = text
		s.Log.Error("cluster.yaml is not right, the last good one stays", "error", err)
	}
	if s.cluster == nil {
		return nil, err
	}
	return s.cluster, nil
}

// lastCluster is the last good one, nil before the first.
func (s *Source) lastCluster() *v1alpha1.ClusterConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

func readCluster(path string) (*v1alpha1.ClusterConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return v1alpha1.LoadClusterConfig(path, data)
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

// merge adds the peers that were known when cluster.yaml was rendered to those
// that the API knows, which are right where both know one: by its name, or by an
// address, which the node may have taken over (hard case 15).
func merge(known, live []v1alpha1.Peer, own []netip.Addr) []v1alpha1.Peer {
	out := slices.Clone(live)
	taken := slices.Clone(own)
	for _, p := range live {
		taken = append(taken, p.Addresses...)
	}
	for _, p := range known {
		same := slices.ContainsFunc(live, func(l v1alpha1.Peer) bool { return l.Name == p.Name })
		moved := slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool { return slices.Contains(taken, a) })
		if !same && !moved {
			out = append(out, p)
		}
	}
	return out
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
