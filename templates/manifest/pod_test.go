package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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

// Every pod of every role decodes strictly, with its image and the credentials that it needs.
func TestRenderPod(t *testing.T) {
	_, err := RenderPod("nope", PodParams{})
	testkit.Fails(t, err, "no template of that name")
	node := []string{"/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki"}
	credentials := map[string][]string{
		"bootstrap": {"/etc/kubernetes"}, "master": node, "arbiter": node, "worker": node, "infra": node,
	}
	for role, want := range credentials {
		for name, image := range map[string]string{Keepalived: images.Keepalived, HAProxy: images.HAProxy, CoreDNS: images.CoreDNS, MDNS: images.Agent} {
			t.Run(role+"/"+name, func(t *testing.T) {
				text, err := RenderPod(name, PodParams{Role: role, Namespace: "openshift-vipgen-infra", Images: images})
				testkit.Must(t, err)
				var p corev1.Pod
				testkit.Must(testkit.In(t, string(text)), yaml.UnmarshalStrict(text, &p))
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

// TestByInterface: the pod bgp can open raw sockets where it sends router advertisements, and nowhere else.
func TestByInterface(t *testing.T) {
	for with, want := range map[bool]string{true: "add: [NET_ADMIN, NET_RAW, SYS_NICE]", false: "add: [NET_ADMIN, SYS_NICE]"} {
		text, err := RenderPod(BGP, PodParams{Role: v1alpha1.RoleMaster, Images: images, ByInterface: with})
		testkit.Must(t, err)
		testkit.Contains(t, string(text), want)
	}
}

// security is the page with the table of privileges.
const security = "../../docs/security.md"

// every is the container of rows that apply to all of them.
const every = "every one"

// privileges returns the privileges of the containers of the pods of a node and of the
// bootstrap host, by container.
func privileges(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	for _, role := range []string{v1alpha1.RoleMaster, v1alpha1.RoleBootstrap} {
		for _, name := range []string{Keepalived, BGP, HAProxy, CoreDNS, MDNS} {
			text, err := RenderPod(name, PodParams{Role: role, Namespace: "n", Images: images, ByInterface: true})
			testkit.Must(t, err)
			var p corev1.Pod
			testkit.Must(t, yaml.UnmarshalStrict(text, &p))
			for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
				if out[c.Name] == nil {
					out[c.Name] = map[string]bool{}
				}
				for _, may := range privilegesOf(&p.Spec, &c) {
					out[c.Name][may] = true
				}
			}
		}
	}
	return out
}

func privilegesOf(p *corev1.PodSpec, c *corev1.Container) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	say("user %d", *p.SecurityContext.RunAsUser)
	say("SELinux type %s", p.SecurityContext.SELinuxOptions.Type)
	say("seccomp profile %s", p.SecurityContext.SeccompProfile.Type)
	if p.HostNetwork {
		say("network of the host")
	}
	if p.HostPID {
		say("processes of the host")
	}
	if p.HostIPC {
		say("shared memory of the host")
	}
	if s := c.SecurityContext; s.Privileged != nil && *s.Privileged {
		say("everything")
	}
	for _, name := range c.SecurityContext.Capabilities.Add {
		say("capability %s", name)
	}
	for _, m := range c.VolumeMounts {
		if m.ReadOnly {
			say("read %s", m.MountPath)
		} else {
			say("write %s", m.MountPath)
		}
	}
	return out
}

// Every privilege of a container is in the table with a reason, and no other one.
func TestPrivilegesAreDocumented(t *testing.T) {
	page := testkit.ReadFile(t, security)
	documented := map[string]map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| ((?:`[a-z-]+`(?:, )?)+|" + every + ") \\| ((?:user|network|SELinux|seccomp|processes|shared|everything|capability|read|write)[^|]*) \\| [^|]{3,} \\|$")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		for container := range strings.SplitSeq(strings.ReplaceAll(m[1], "`", ""), ", ") {
			if documented[container] == nil {
				documented[container] = map[string]bool{}
			}
			if documented[container][m[2]] {
				t.Errorf("%s: %q stands there twice", container, m[2])
			}
			documented[container][m[2]] = true
		}
	}
	all := privileges(t)
	for _, container := range slices.Sorted(maps.Keys(all)) {
		for _, may := range slices.Sorted(maps.Keys(all[container])) {
			if !documented[container][may] && !documented[every][may] {
				t.Errorf("%s has no row for %q of %s", security, may, container)
			}
		}
		for may := range documented[every] {
			if !all[container][may] {
				t.Errorf("%s lists for every container a privilege that %s lacks: %q", security, container, may)
			}
		}
	}
	for container, may := range documented {
		for _, what := range slices.Sorted(maps.Keys(may)) {
			if container != every && !all[container][what] {
				t.Errorf("%s has a row that no pod needs: %s, %q", security, container, what)
			}
		}
	}
}
