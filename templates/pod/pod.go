// Package pod makes the static pod manifests of a node. They hold nothing that
// changes with VIPs, peers, timing or DNS: those stand in cluster.yaml, so that
// a change of them restarts no pod.
package pod

import (
	"bytes"
	"embed"

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

// Kubeconfig is the one that the agent uses.
func (p Params) Kubeconfig() string {
	if p.Bootstrap() {
		return "/etc/kubernetes/kubeconfig"
	}
	return "/var/lib/kubelet/kubeconfig"
}

// Credentials is the directory that holds the kubeconfig and what it refers to.
func (p Params) Credentials() string {
	if p.Bootstrap() {
		return "/etc/kubernetes"
	}
	return "/var/lib/kubelet"
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
