package metallb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vipgen/vipgen/lab/kubeapi"
	"github.com/vipgen/vipgen/lab/process"
)

// patience is how long anything may take that takes seconds on an idle machine.
const patience = 5 * time.Minute

const domain = "demo.example.com"

// resources are those of the kinds that `vipgen metallb` prints.
var resources = map[string]schema.GroupVersionResource{
	"IPAddressPool":    {Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"},
	"L2Advertisement":  {Group: "metallb.io", Version: "v1beta1", Resource: "l2advertisements"},
	"BGPAdvertisement": {Group: "metallb.io", Version: "v1beta1", Resource: "bgpadvertisements"},
	"BGPPeer":          {Group: "metallb.io", Version: "v1beta2", Resource: "bgppeers"},
	"Service":          {Version: "v1", Resource: "services"},
	"Endpoints":        {Version: "v1", Resource: "endpoints"},
	"EndpointSlice":    {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"APIServer":        {Group: "config.openshift.io", Version: "v1", Resource: "apiservers"},
}

// server is a real kube-apiserver with the CRDs.
type server struct {
	*testing.T
	dir    string
	ca     []byte
	client []byte // certificate and key of an administrator
	addr   string
	dynamic.Interface
}

// newServer starts etcd and kube-apiserver on loopback, with Services of both
// families, the CRDs, and the namespaces that a cluster with MetalLB has.
func newServer(t *testing.T) *server {
	t.Helper()
	dir, loopback := t.TempDir(), netip.MustParseAddr("127.0.0.1")
	addr := netip.AddrPortFrom(loopback, freePort(t))
	plane, err := kubeapi.NewReal(kubeapi.RealConfig{Dir: dir, Etcd: tool(t, "etcd"), APIServer: tool(t, "kube-apiserver"),
		Addr: loopback, Port: addr.Port(), Domain: domain, ServiceNetworks: "10.0.0.0/24,fd02::/112"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plane.Close() })
	s := &server{T: t, dir: dir, ca: plane.CA().CertPEM, addr: addr.String()}
	api, err := plane.Server(nil, loopback)
	if err == nil {
		err = api.Launch()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err == nil {
		err = api.AwaitReady(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	pair, err := plane.CA().Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	s.client = pair.Both()
	s.Interface, err = dynamic.NewForConfig(&rest.Config{Host: "https://" + s.addr, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{ServerName: "api-int." + domain, CAData: s.ca, CertData: pair.Cert, KeyData: pair.Key}})
	if err != nil {
		t.Fatal(err)
	}
	s.install()
	return s
}

// install adds CRDs and namespaces.
func (s *server) install() {
	s.Helper()
	crds := s.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range crdFiles(s.T) {
		crd := readCRD(s.T, file)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			s.Fatal(err)
		}
		if _, err := crds.Create(s.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		s.await(crd.Name+" to be established", func() bool {
			o, err := crds.Get(s.Context(), crd.Name, metav1.GetOptions{})
			if err != nil {
				s.Fatal(err)
			}
			got := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, got); err != nil {
				s.Fatal(err)
			}
			return slices.ContainsFunc(got.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
		})
	}
	namespaces := s.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, name := range []string{"metallb-system", "metallb", "openshift-config", "openshift-kube-apiserver"} {
		n := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := namespaces.Create(s.Context(), n, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// tool is the path of a program that the project builds at a pinned version.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.cache/bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not built: run `make e2e-tools` (%v)", name, err)
	}
	return path
}

func (s *server) await(what string, condition func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// of is where an object belongs.
func (s *server) of(o *unstructured.Unstructured) dynamic.ResourceInterface {
	r := s.Resource(resources[o.GetKind()])
	if o.GetNamespace() == "" {
		return r
	}
	return r.Namespace(o.GetNamespace())
}

// apply makes an object as `oc apply --server-side --validate=strict` does.
func (s *server) apply(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	// The client's own Apply has no word for validation.
	return s.of(o).Patch(s.Context(), o.GetName(), "application/apply-patch+yaml", data, metav1.PatchOptions{FieldManager: "vipgen", FieldValidation: "Strict"})
}

func (s *server) remove(o *unstructured.Unstructured) {
	s.Helper()
	if err := s.of(o).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
		s.Errorf("deleting %s: %v", o.GetName(), err)
	}
	s.await(o.GetKind()+" to be gone", func() bool {
		_, err := s.of(o).Get(s.Context(), o.GetName(), metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}

// A real API server, with MetalLB's and OpenShift's own CRDs, takes every object as
// it is written; applied again, nothing changes.
func TestServer(t *testing.T) {
	s := newServer(t)
	cases := goldenCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			for _, o := range cases[name] {
				taken, err := s.apply(o)
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
					continue
				}
				for _, wrong := range differences("", o.Object, taken.Object) {
					t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), wrong)
				}
				again, err := s.apply(o)
				if err != nil || again.GetResourceVersion() != taken.GetResourceVersion() {
					t.Errorf("%s %s again: %v", o.GetKind(), o.GetName(), err)
				}
				defer s.remove(o)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		bgp := first(t, cases, "BGPPeer").DeepCopy()
		unstructured.SetNestedField(bgp.Object, int64(20000), "spec", "peerPort")
		slice := first(t, cases, "EndpointSlice").DeepCopy()
		unstructured.SetNestedField(slice.Object, "IPv6", "addressType")
		pool := first(t, cases, "IPAddressPool").DeepCopy()
		unstructured.SetNestedField(pool.Object, true, "spec", "autoasign")
		for _, o := range []*unstructured.Unstructured{bgp, slice, pool} {
			if _, err := s.apply(o); err == nil {
				t.Errorf("%s was taken", o.GetKind())
			}
		}
	})
}

// differences says what of want got lacks or has otherwise. It may have more: there
// are defaults.
func differences(path string, want, got any) (out []string) {
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for key := range want {
			out = append(out, differences(path+"."+key, want[key], fields[key])...)
		}
	case []any:
		items, _ := got.([]any)
		if len(items) != len(want) {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
		for i := range want {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), want[i], items[i])...)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
	}
	return out
}

// MetalLB's own controller gives the Service of every case the addresses that were
// asked for, from the pool that was made for them.
func TestController(t *testing.T) {
	s := newServer(t)
	controller := s.controller("metallb-system")
	cases := goldenCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if name == "none" { // MetalLB is in another namespace there
			continue
		}
		t.Run(name, func(t *testing.T) {
			objects := cases[name]
			if name == "pool" {
				objects = append([]*unstructured.Unstructured{pool("public", "198.51.100.0/24")}, objects...)
			}
			var service *unstructured.Unstructured
			for _, o := range objects {
				if _, err := s.apply(o); err != nil {
					t.Fatal(err)
				}
				defer s.remove(o)
				if o.GetKind() == "Service" {
					service = o
				}
			}
			want := wanted(service)
			var got []string
			s.await("MetalLB to give the Service an address", func() bool {
				if controller.Ended() {
					t.Fatal("MetalLB's controller has ended")
				}
				got = s.given(service)
				return len(got) >= len(want)
			})
			slices.Sort(got) // MetalLB keeps no order
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the Service got %s, not %s", got, want)
			}
		})
	}
	t.Run("a Service elsewhere does not get it", func(t *testing.T) { s.checkReserved(t, cases["l2"]) })
}

// checkReserved: a Service of another namespace that asks for the address does not
// get it, though it is free; the API's does then.
func (s *server) checkReserved(t *testing.T, objects []*unstructured.Unstructured) {
	var service *unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == "Service" {
			service = o
			continue
		}
		if _, err := s.apply(o); err != nil {
			t.Fatal(err)
		}
		defer s.remove(o)
	}
	other := service.DeepCopy()
	other.SetNamespace("default")
	other.SetName("greedy")
	if _, err := s.apply(other); err != nil {
		t.Fatal(err)
	}
	defer s.remove(other)
	s.await("MetalLB to refuse", func() bool { return s.event("default", "greedy", "AllocationFailed") })
	if got := s.given(other); len(got) > 0 {
		t.Errorf("it got %s", got)
	}
	if _, err := s.apply(service); err != nil {
		t.Fatal(err)
	}
	defer s.remove(service)
	s.await("the API's own Service to get it", func() bool { return len(s.given(service)) == 1 })
}

// event says whether there is one of a reason about a Service.
func (s *server) event(namespace, name, reason string) bool {
	s.Helper()
	list, err := s.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool {
		about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		why, _, _ := unstructured.NestedString(o.Object, "reason")
		return about == name && why == reason
	})
}

// wanted are the addresses that a Service asks for.
func wanted(service *unstructured.Unstructured) []string {
	for _, prefix := range []string{"metallb.io", "metallb.universe.tf"} {
		if list := service.GetAnnotations()[prefix+"/loadBalancerIPs"]; list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// given are the addresses that it has.
func (s *server) given(service *unstructured.Unstructured) (out []string) {
	s.Helper()
	o, err := s.of(service).Get(s.Context(), service.GetName(), metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	got := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, got); err != nil {
		s.Fatal(err)
	}
	for _, i := range got.Status.LoadBalancer.Ingress {
		out = append(out, i.IP)
	}
	return out
}

func pool(name, addresses string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
		"metadata": map[string]any{"name": name, "namespace": "metallb-system"}, "spec": map[string]any{"addresses": []any{addresses}}}}
}

// controller runs MetalLB's.
func (s *server) controller(namespace string) *process.Process {
	s.Helper()
	file := func(name string, data []byte) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			s.Fatal(err)
		}
		return path
	}
	pair := file("controller.pem", s.client)
	config := file("controller.kubeconfig", fmt.Appendf(nil, `apiVersion: v1
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
`, s.addr, domain, file("controller-ca.crt", s.ca), pair))
	cmd := exec.Command(tool(s.T, "metallb-controller"), "--namespace", namespace, "--webhook-mode", "disabled", "--port", fmt.Sprint(freePort(s.T)))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "METALLB_BGP_TYPE=frr-k8s")
	p, err := process.Start("metallb-controller", cmd, filepath.Join(s.dir, "metallb-controller.log"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("MetalLB's controller says\n%s", p.Output())
		}
	})
	return p
}
