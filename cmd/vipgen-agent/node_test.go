package main

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
	"github.com/vipgen/vipgen/templates/manifest"
)

// rendered is a golden case: what vipgen renders for the cluster.
const rendered = "../../golden/cases/baremetal-usermanaged/expected/files/"

// self is the measured node: the first of the control plane.
const self = 0

// node is a control-plane node with everything that the agent's jobs watch.
type node struct {
	*daemon.Host
	b     *testing.B
	state *state.Dir
}

func newNode(b *testing.B, program string, api *daemon.APIServer) *node {
	b.Helper()
	ns, err := daemon.NewNetwork(b).AddNode(nodeName(self), netip.MustParsePrefix(nodeAddress(self)+"/24"))
	testkit.Must(b, err)
	n := &node{Host: daemon.NewHost(b, ns), b: b}
	n.Bind(program, "/vipgen/vipgen-agent")
	n.Bind(testkit.Tool(b, "coredns"), "/coredns")
	for path, data := range map[string]string{
		v1alpha1.ClusterConfigPath:        readFile(b, rendered+"every-pool"+v1alpha1.ClusterConfigPath),
		v1alpha1.ModeFile:                 readFile(b, rendered+"every-pool"+v1alpha1.ModeFile),
		v1alpha1.KeepalivedTemplate:       keepalived.Template,
		v1alpha1.HAProxyTemplate:          haproxy.Template,
		v1alpha1.CorefileTemplate:         coredns.Template,
		v1alpha1.HostsTemplate:            coredns.HostsTemplate,
		"/run/NetworkManager/resolv.conf": "nameserver 192.168.111.1\n",
		"/etc/hosts":                      "127.0.0.1 localhost\n",
	} {
		n.Write(path, []byte(data))
	}
	n.credentials(api)
	n.services(api)
	testkit.Must(b, os.MkdirAll(n.Path(v1alpha1.RunDir), 0o755))
	if n.state, err = state.Open(n.Path(v1alpha1.RunDir)); err != nil {
		b.Fatal(err)
	}
	return n
}

// credentials writes kubelet's credentials, with the rights of vipgen's manifests.
func (n *node) credentials(api *daemon.APIServer) {
	n.b.Helper()
	if _, err := kubeapi.WriteKubeconfig(n.Path("/"), "/var/lib/kubelet", api.CA, nodeName(self), api.InternalName+":6443"); err != nil {
		n.b.Fatal(err)
	}
	for name, collection := range map[string]string{
		manifest.ClusterRole: "clusterroles", manifest.ClusterRoleBinding: "clusterrolebindings",
	} {
		data, err := manifest.Render(name, manifest.Params{})
		testkit.Must(n.b, err)
		api.Create("/apis/rbac.authorization.k8s.io/v1/"+collection, data)
	}
}

// services starts the targets of the node's checks: the API server and the machine config
// server.
func (n *node) services(api *daemon.APIServer) {
	n.b.Helper()
	forward(n.listen(":6443"), api.Addr.String())
	config := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	config.Listener.Close()
	config.Listener = n.listen(":22623")
	config.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	config.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // jobs are killed while they connect
	config.StartTLS()
	n.b.Cleanup(func() { config.Config.Close() })
}

func (n *node) listen(address string) (l net.Listener) {
	n.b.Helper()
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(n.b, err)
	n.b.Cleanup(func() { l.Close() })
	return l
}

// forward connects to an address outside of the node's namespace for each connection.
func forward(l net.Listener, to string) {
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					io.Copy(out, in)
					out.Close()
				}()
				io.Copy(in, out)
			}()
		}
	}()
}

// await polls until ok.
func (n *node) await(what string, ok func() bool) {
	n.b.Helper()
	testkit.Await(n.b, what, ok)
}

// commandOf returns the command line of a job in the rendered pods.
func commandOf(b *testing.B, pod, job string) []string {
	b.Helper()
	var p corev1.Pod
	testkit.Must(b, yaml.Unmarshal([]byte(readFile(b, rendered+"master/etc/kubernetes/manifests/"+pod+".yaml")), &p))
	for _, c := range p.Spec.Containers {
		if len(c.Command) > 1 && c.Command[1] == job {
			return c.Command
		}
	}
	b.Fatalf("pod %s has no container that runs %s", pod, job)
	return nil
}

func readFile(b *testing.B, path string) string {
	b.Helper()
	return string(testkit.ReadFile(b, path))
}
