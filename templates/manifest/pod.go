package manifest

import (
	"bytes"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// PodParams is the data of the pod templates.
type PodParams struct {
	// Role is the pool of the node.
	Role string
	// Namespace is the namespace of the mirror pods.
	Namespace string
	// Images must be complete.
	Images v1alpha1.Images
	// ByInterface reports that the pod bgp has sessions by interface, for which it sends router
	// advertisements.
	ByInterface bool
}

// Names of the pods, in the order of all lists.
const (
	Keepalived = "keepalived"
	BGP        = "bgp"
	HAProxy    = "haproxy"
	CoreDNS    = "coredns"
	MDNS       = "mdns-publisher"
)

// Bootstrap reports whether the pod is for the bootstrap host, whose credentials are in
// another place.
func (p PodParams) Bootstrap() bool { return p.Role == v1alpha1.RoleBootstrap }

// ControlPlane reports whether the pod is for a node of the control plane.
func (p PodParams) ControlPlane() bool { return v1alpha1.ControlPlaneRole(p.Role) }

// Kubeconfig returns the path of the agent's kubeconfig.
func (p PodParams) Kubeconfig() string {
	if p.Bootstrap() {
		return "/etc/kubernetes/kubeconfig"
	}
	return "/var/lib/kubelet/kubeconfig"
}

// Volume is a file or directory of the host that a container reads.
type Volume struct {
	Name, Path string
	// Type is the type of the hostPath.
	Type string
}

// Directory reports whether files mounted later below it appear in the container.
func (v Volume) Directory() bool { return strings.HasPrefix(v.Type, "Directory") }

// Credentials returns the kubeconfig and its certificates. On a node kubelet creates both
// before it runs the first pod. Its certificate is a link that kubelet moves to new
// files, so its directory is mounted. The bootstrap's kubeconfig may be written after its
// pods start, which then see it only through its directory.
func (p PodParams) Credentials() []Volume {
	if p.Bootstrap() {
		return []Volume{{"credentials", "/etc/kubernetes", "Directory"}}
	}
	return []Volume{
		{"kubeconfig", "/var/lib/kubelet/kubeconfig", "FileOrCreate"},
		{"certificates", "/var/lib/kubelet/pki", "DirectoryOrCreate"},
	}
}

// RenderPod renders the static pod manifest of a pod by name, without blank lines, which shared
// parts would leave. It contains nothing that changes with VIPs, peers, timing or DNS: those are
// in cluster.yaml, so that changing them restarts no pod, except for the first session by interface.
func RenderPod(name string, p PodParams) ([]byte, error) {
	text, err := parsed.Run(name+".yaml", p)
	return bytes.ReplaceAll(text, []byte("\n\n"), []byte("\n")), err
}
