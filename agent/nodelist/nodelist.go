// Package nodelist describes what the agent's jobs know of the cluster's nodes, without the client
// of the API that agent/nodes watches them with.
package nodelist

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Options configure a watch of the nodes.
type Options struct {
	// Node is the name of this node, as the API knows it.
	Node string
	// Role is the pool of this node. It decides which API servers are read.
	Role string
	// Cluster holds the VIPs, machine networks, ports and configured peers. SetCluster
	// replaces it.
	Cluster *v1alpha1.ClusterConfig
	// Kubeconfig is the path of a kubeconfig, such as
	// /var/lib/kubelet/kubeconfig. It may appear and change at any time.
	Kubeconfig string
	// ServerName is the name for which certificates of API servers are verified. Empty:
	// the kubeconfig's, api-int.<domain> on OpenShift.
	ServerName string
	// StateFile is the path of the last known state, in an existing directory, used by
	// this watch only. Empty: no state is stored.
	StateFile string
	// Quiet is how long nothing may change before a delivery, 100 ms if 0. MaxDelay is
	// the longest delay of a change and the least interval between deliveries, 3 s if 0.
	Quiet, MaxDelay time.Duration
	// ControlPlane watches only the Nodes of the control plane: other nodes are never
	// Registered.
	ControlPlane bool
	// RouterPods also watches the router pods of this node.
	RouterPods bool
	// Bootstrap also watches the state of the bootstrap host.
	Bootstrap bool
	// Log receives changes and failures.
	Log *slog.Logger
}

// Snapshot is the known state of the cluster's nodes at one time. It is shared between
// subscribers and must not be changed.
type Snapshot struct {
	// Peers are all other nodes, sorted by name.
	Peers []v1alpha1.Peer
	// Registered reports that this node is in the cluster's list of nodes.
	Registered bool
	// Self is this node as its peers see it, if Registered.
	Self v1alpha1.Peer
	// Updates holds the update progress of each node, this one's included, sorted by
	// name.
	Updates []NodeUpdate
	// Bootstrap is the bootstrap host, if watched.
	Bootstrap Bootstrap
	// Stale reports that no API server vouches for the data now: it is the last known
	// state, perhaps from before the agent started.
	Stale bool
}

// NodeUpdate is the update progress of the named node.
type NodeUpdate struct {
	Name string
	Update
	// VRRP is the announcement of the node's agent; empty for none.
	VRRP string
}

// Equal reports whether two snapshots have the same content.
func (s *Snapshot) Equal(o *Snapshot) bool {
	return s.Stale == o.Stale && s.Registered == o.Registered && SamePeer(s.Self, o.Self) && s.Bootstrap == o.Bootstrap &&
		slices.EqualFunc(s.Peers, o.Peers, SamePeer) && slices.Equal(s.Updates, o.Updates)
}

// SamePeer reports whether two descriptions of a node have the same content.
func SamePeer(a, b v1alpha1.Peer) bool {
	return a.Name == b.Name && a.Role == b.Role && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.Elsewhere, b.Elsewhere) && maps.Equal(a.Labels, b.Labels)
}

// All returns all nodes, this one first.
func (s *Snapshot) All() []v1alpha1.Peer {
	if !s.Registered {
		return s.Peers
	}
	return append([]v1alpha1.Peer{s.Self}, s.Peers...)
}

// Update is the progress of a node's update.
type Update struct {
	// CurrentConfig and DesiredConfig name the node's current and target rendered
	// MachineConfig.
	CurrentConfig string `json:"currentConfig,omitempty"`
	DesiredConfig string `json:"desiredConfig,omitempty"`
	// State is "Done" when no update is pending.
	State string `json:"state,omitempty"`
	// KubeletVersion is, for example, "v1.34.2".
	KubeletVersion string `json:"kubeletVersion,omitempty"`
}

// Bootstrap is the known state of the bootstrap host; the zero value if unknown.
type Bootstrap struct {
	// Address is its current or last address.
	Address netip.Addr `json:"address,omitzero"`
	// Gone reports that the cluster no longer needs it.
	Gone bool `json:"gone,omitempty"`
}

// Routers lists the ingress controllers with router pods on this node (hard case 21). It
// is shared between subscribers and must not be changed.
type Routers struct {
	// Ready names the ingress controllers with a ready router, sorted.
	Ready []string
	// Present names those with any router pod, even one that starts or ends, sorted.
	Present []string
	// Stale reports that no API server vouches for the data now.
	Stale bool
}

// Has reports whether the ingress controller has a ready router on this node.
func (r Routers) Has(controller string) bool { return slices.Contains(r.Ready, controller) }

// Foreign reports whether only routers of other ingress controllers run on this node:
// they answer at the routers' port.
func (r Routers) Foreign(controller string) bool {
	return len(r.Present) > 0 && !slices.Contains(r.Present, controller)
}

// maxVRRPText bounds an announcement, at many times its usual length in bytes.
const maxVRRPText = 1024

// ValidVRRPText reports whether an announcement is short and printable.
func ValidVRRPText(s string) bool { return Printable(s, maxVRRPText) }

// Printable reports whether a text is printable ASCII of at most that length.
func Printable(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}
