package pod

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

var images = v1alpha1.Images{
	Agent:      "registry.example.com/agent:1",
	Keepalived: "registry.example.com/keepalived:1",
	HAProxy:    "registry.example.com/haproxy:1",
	CoreDNS:    "registry.example.com/coredns:1",
}

// Every pod of every role decodes strictly and meets the requirements of DESIGN section 6.
func TestRender(t *testing.T) {
	_, err := Render("nope", Params{})
	testkit.Fails(t, err, "no template of that name")
	node := []string{"/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki"}
	credentials := map[string][]string{
		"bootstrap": {"/etc/kubernetes"}, "master": node, "arbiter": node, "worker": node, "infra": node,
	}
	for role, want := range credentials {
		for name, image := range map[string]string{Keepalived: images.Keepalived, HAProxy: images.HAProxy, CoreDNS: images.CoreDNS, MDNS: images.Agent} {
			t.Run(role+"/"+name, func(t *testing.T) {
				text, err := Render(name, Params{Role: role, Namespace: "openshift-vipgen-infra", Images: images})
				testkit.Must(t, err)
				var p corev1.Pod
				if err := yaml.UnmarshalStrict(text, &p); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				checkPod(t, &p)
				main := p.Spec.Containers[0]
				if p.Name != name || main.Image != image || !slices.Contains(main.Command, "--role="+role) {
					t.Errorf("%s runs %s as %q", p.Name, main.Image, main.Command)
				}
				want := want
				if name == MDNS {
					want = nil // it uses no API
				}
				var got []string
				for _, m := range main.VolumeMounts {
					if path := m.MountPath; strings.HasPrefix(path, "/var/lib/kubelet") || path == "/etc/kubernetes" {
						got = append(got, path)
					}
				}
				testkit.Equal(t, want, got)
				kubeconfig := slices.ContainsFunc(main.Command, func(arg string) bool {
					return strings.HasPrefix(arg, "--kubeconfig=") && strings.HasPrefix(strings.TrimPrefix(arg, "--kubeconfig="), cmp.Or(want...))
				})
				if kubeconfig != (want != nil) {
					t.Errorf("%q, with %q", main.Command, want)
				}
			})
		}
	}
}

// checkPod checks what no reviewer of golden files should have to look for.
func checkPod(t *testing.T, p *corev1.Pod) {
	t.Helper()
	// For a static pod kubelet uses only the number: that of the class.
	if p.Spec.PriorityClassName != "system-node-critical" || p.Spec.Priority == nil || *p.Spec.Priority != 2_000_001_000 {
		t.Errorf("priority %q, %v", p.Spec.PriorityClassName, p.Spec.Priority)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		sc := c.SecurityContext
		if sc == nil || sc.ReadOnlyRootFilesystem == nil || !*sc.ReadOnlyRootFilesystem || sc.Capabilities == nil || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: security context %+v", c.Name, sc)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s: resources %+v", c.Name, c.Resources)
		}
		// Only the mDNS container has limits: no VIP depends on it.
		if limited := len(c.Resources.Limits) > 0; limited != (c.Name == MDNS) || !c.Resources.Limits.Cpu().IsZero() {
			t.Errorf("%s: limits %+v", c.Name, c.Resources.Limits)
		}
		if !strings.HasSuffix(c.Command[0], "/vipgen-agent") {
			t.Errorf("%s runs %q", c.Name, c.Command)
		}
	}
	for _, c := range p.Spec.Containers {
		if c.LivenessProbe == nil || c.LivenessProbe.Exec == nil || !slices.Contains(c.LivenessProbe.Exec.Command, "probe") {
			t.Errorf("%s: liveness probe %+v", c.Name, c.LivenessProbe)
		}
	}
}
