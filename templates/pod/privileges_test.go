package pod

import (
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
		for _, name := range []string{Keepalived, HAProxy, CoreDNS, MDNS} {
			text, err := Render(name, Params{Role: role, Namespace: "n", Images: images})
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
