package metallb

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// patience is the time limit for operations that take seconds on an idle machine.
const patience = 5 * time.Minute

const domain = "demo.example.com"

var loopback = netip.MustParseAddr("127.0.0.1")

func freePort(t *testing.T) uint16 {
	t.Helper()
	port, err := netns.FreePort(loopback)
	testkit.Must(t, err)
	return port
}

func (s *server) await(what string, condition func() bool) {
	s.Helper()
	testkit.AwaitWithin(s, patience, what, condition)
}

// resources are the resources of the kinds that `vipgen metallb` prints.
var resources = map[string]schema.GroupVersionResource{
	"IPAddressPool":    {Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"},
	"L2Advertisement":  {Group: "metallb.io", Version: "v1beta1", Resource: "l2advertisements"},
	"BGPAdvertisement": {Group: "metallb.io", Version: "v1beta1", Resource: "bgpadvertisements"},
	"BGPPeer":          {Group: "metallb.io", Version: "v1beta2", Resource: "bgppeers"},
	"Service":          {Version: "v1", Resource: "services"},
	"EndpointSlice":    {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"APIServer":        {Group: "config.openshift.io", Version: "v1", Resource: "apiservers"},
}

// server is a real kube-apiserver with the CRDs.
type server struct {
	*testing.T
	dir        string
	kubeconfig string      // an administrator's
	node       *netns.Node // nil: this machine
	dynamic.Interface
}

// in returns the server for a subtest, which cannot fail on behalf of another one.
func (s server) in(t *testing.T) *server {
	s.T = t
	return &s
}

// newServer starts etcd and kube-apiserver on loopback, with Services of both
// families, the CRDs, and the namespaces that a cluster with MetalLB has.
func newServer(t *testing.T) *server {
	t.Helper()
	return newServerOn(t, nil, netip.AddrPortFrom(loopback, freePort(t)))
}

// newServerOn is newServer on a node.
func newServerOn(t *testing.T, node *netns.Node, addr netip.AddrPort) *server {
	t.Helper()
	testkit.Live(t)
	dir := t.TempDir()
	plane, err := kubeapi.NewReal(kubeapi.RealConfig{Dir: dir, Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"),
		Node: node, Addr: addr.Addr(), Port: addr.Port(), Domain: domain, ServiceNetworks: "10.0.0.0/24,fd02::/112"})
	testkit.Must(t, err)
	t.Cleanup(func() { plane.Close() })
	api, err := plane.Server(node, addr.Addr())
	if err == nil {
		err = api.Launch()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err == nil {
		err = api.AwaitReady(ctx)
	}
	testkit.Must(t, err)
	pair, err := plane.CA().Client("admin", "system:masters")
	testkit.Must(t, err)
	s := &server{T: t, dir: dir, node: node}
	s.kubeconfig = s.administrator(addr, plane.CA().CertPEM, pair.Both())
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	testkit.Must(t, err)
	config.QPS = -1
	if node != nil {
		config.Dial = node.DialContext
	}
	s.Interface, err = dynamic.NewForConfig(config)
	testkit.Must(t, err)
	s.install()
	return s
}

// crdFiles are MetalLB's CRDs, and OpenShift's of the APIServer object.
func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleDir(t, "go.universe.tf/metallb"), "config/crd/bases/*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d CRDs of MetalLB, %v", len(files), err)
	}
	return append(files, filepath.Join(moduleDir(t, "github.com/openshift/api"), "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml"))
}

// install adds CRDs and namespaces.
func (s *server) install() {
	s.Helper()
	crds := s.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range crdFiles(s.T) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		testkit.Must(s, yaml.Unmarshal(testkit.ReadFile(s, file), crd))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		testkit.Must(s, err)
		_, err = crds.Create(s.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		testkit.Must(s, err)
		// The server serves an established kind only a moment later.
		served := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
		objects := s.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[served].Name, Resource: crd.Spec.Names.Plural})
		s.await(crd.Name+" to be established and served", func() bool {
			o, err := crds.Get(s.Context(), crd.Name, metav1.GetOptions{})
			testkit.Must(s, err)
			got := &apiextensionsv1.CustomResourceDefinition{}
			testkit.Must(s, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, got))
			_, err = objects.List(s.Context(), metav1.ListOptions{})
			return err == nil && slices.ContainsFunc(got.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
		})
	}
	namespaces := s.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, name := range []string{"metallb-system", "metallb", "openshift-config", "openshift-kube-apiserver"} {
		n := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		_, err := namespaces.Create(s.Context(), n, metav1.CreateOptions{})
		testkit.Must(s, err)
	}
}

// resource returns the resource of an object.
func (s *server) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	r := s.Resource(resources[o.GetKind()])
	if o.GetNamespace() == "" {
		return r
	}
	return r.Namespace(o.GetNamespace())
}

// apply creates an object like `oc apply --server-side --validate=strict`.
func (s *server) apply(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	// The client's own Apply does not support validation.
	return s.resource(o).Patch(s.Context(), o.GetName(), "application/apply-patch+yaml", data, metav1.PatchOptions{FieldManager: "vipgen", FieldValidation: "Strict"})
}

// mustApply is apply of an object that must be accepted; the returned function removes it.
func (s *server) mustApply(o *unstructured.Unstructured) (remove func()) {
	s.Helper()
	_, err := s.apply(o)
	testkit.Must(s, err)
	return func() { s.remove(o) }
}

func (s *server) remove(o *unstructured.Unstructured) {
	s.Helper()
	testkit.Check(testkit.In(s, o.GetName()), s.resource(o).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{}))
	s.await(o.GetKind()+" to be gone", func() bool {
		_, err := s.resource(o).Get(s.Context(), o.GetName(), metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}

// controller runs MetalLB's controller on the API server's machine.
func (s *server) controller(namespace string) *process.Process {
	s.Helper()
	cmd := s.command(s.node, "metallb-controller", "--namespace", namespace, "--webhook-mode", "disabled", "--port", fmt.Sprint(freePort(s.T)))
	cmd.Env = append(cmd.Env, "METALLB_BGP_TYPE=frr-k8s")
	return s.start("metallb-controller", cmd)
}

// command returns the command of a program that uses the API as administrator, by KUBECONFIG.
func (s *server) command(node *netns.Node, name string, args ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(testkit.Tool(s.T, name), args...)
	if node != nil {
		cmd = node.Command(context.Background(), testkit.Tool(s.T, name), args...)
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	return cmd
}

// start runs a program until the test ends, and prints its output if that fails.
func (s *server) start(name string, cmd *exec.Cmd) *process.Process {
	s.Helper()
	p, err := process.Start(name, cmd, filepath.Join(s.dir, name+".log"))
	testkit.Must(s, err)
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("output of %s:\n%s", name, p.Output())
		}
	})
	return p
}

// administrator writes the administrator's kubeconfig, and the CA next to it, ca.crt.
func (s *server) administrator(addr netip.AddrPort, ca, client []byte) string {
	s.Helper()
	file := func(name string, data []byte) string {
		path := filepath.Join(s.dir, name)
		testkit.Must(s, os.WriteFile(path, data, 0o600))
		return path
	}
	return file("kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: local
  cluster: {server: "https://%s", tls-server-name: "api-int.%s", certificate-authority: %s}
users:
- name: admin
  user: {client-certificate: %s, client-key: %[4]s}
contexts:
- name: local
  context: {cluster: local, user: admin}
current-context: local
`, addr, domain, file("ca.crt", ca), file("admin.pem", client)))
}
