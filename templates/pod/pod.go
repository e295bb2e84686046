// Package pod makes the static pod manifests of a node. They hold nothing that
// changes with VIPs, peers, timing or DNS: those stand in cluster.yaml, so that
// a change of them restarts no pod.
package pod

import (
	"bytes"
	"embed"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

// Params is what the pod templates are executed with.
type Params struct {
	// Role is the pool of the node.
	Role string
	// Namespace is where the mirror pods appear.
	Namespace string
	// Images are complete.
	Images v1alpha1.Images
}

// Names of the pods, in the order in which they are listed everywhere.
const (
	Keepalived = "keepalived"
	HAProxy    = "haproxy"
	CoreDNS    = "coredns"
	MDNS       = "mdns-publisher"
)

// Bootstrap says whether the pod is for the bootstrap host, whose credentials
// stand elsewhere.
func (p Params) Bootstrap() bool { return p.Role == v1alpha1.RoleBootstrap }

// ControlPlane says whether the pod is for a node of the control plane.
func (p Params) ControlPlane() bool { return v1alpha1.ControlPlaneRole(p.Role) }

// Kubeconfig is the one that the agent uses.
func (p Params) Kubeconfig() string {
	if p.Bootstrap() {
		return "/etc/kubernetes/kubeconfig"
	}
	return "/var/lib/kubelet/kubeconfig"
}

// Volume is a file or directory of the host that a container reads.
type Volume struct {
	Name, Path string
	// Type is that of a hostPath.
	Type string
}

// Directory says whether what is mounted later below it shows in the container.
func (v Volume) Directory() bool { return strings.HasPrefix(v.Type, "Directory") }

// Credentials are the kubeconfig and what it refers to. On a node kubelet has made
// both before it runs the first pod. Its certificate is a link that kubelet puts
// another file behind, so its directory is mounted. The bootstrap's kubeconfig may be
// written after its pods run, which see it through its directory alone.
func (p Params) Credentials() []Volume {
	if p.Bootstrap() {
		return []Volume{{"credentials", "/etc/kubernetes", "Directory"}}
	}
	return []Volume{
		{"kubeconfig", "/var/lib/kubelet/kubeconfig", "FileOrCreate"},
		{"certificates", "/var/lib/kubelet/pki", "DirectoryOrCreate"},
	}
}

var parsed = templates.ParseAll(files)

// Render makes the manifest of the pod with that name, without blank lines,
// which the parts that pods share would leave. What it returns is not to be
// changed: clusters of a fleet have most of their pods in common, and share it.
func Render(name string, p Params) ([]byte, error) {
	k := key{name, p}
	if text, ok := made.get(k); ok {
		return text, nil
	}
	text, err := parsed.Run(name+".yaml", p)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("\n\n"), []byte("\n"))
	made.put(k, text)
	return text, nil
}
