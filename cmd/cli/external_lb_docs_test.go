package cli

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// docPage reads a page of the documentation.
func docPage(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, "../../docs/"+name))
}

// block returns the first block without a language after a line of a page, unindented.
func block(t *testing.T, page, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, after)
	if !ok {
		t.Fatalf("no %q", after)
	}
	for _, m := range regexp.MustCompile("(?sm)^( *)```(\\w*)\n(.*?\n) *```\n").FindAllStringSubmatch(rest, -1) {
		if m[2] != "" {
			continue
		}
		var out strings.Builder
		for line := range strings.Lines(m[3]) {
			out.WriteString(strings.TrimPrefix(line, m[1]))
		}
		return out.String()
	}
	t.Fatalf("no block after %q", after)
	return ""
}

const pairFlags = " --balancer lb-0=192.0.2.251/24 --balancer lb-1=192.0.2.252/24 --interface ens192"

// TestExternalPage compares docs/external-lb.md with the plan for the example. The addresses of an
// external load balancer are those of the flags, or else of the input.
func TestExternalPage(t *testing.T) {
	text := docPage(t, "external-lb.md")
	documentedDir(t)
	testkit.Equal(t, block(t, text, "## What it has to do\n"), must(t, "external-lb", "plan"))
	render := func(more string) []string { return strings.Fields("external-lb render" + pairFlags + more) }
	before := must(t, render(" --api-vip 192.0.2.250 --ingress-vip 192.0.2.250")...)
	exits(t, command.Input, render(" --api-vip 192.0.2.5")...).reports("[vip-taken]")
	lay(t, map[string]string{
		"install-config.yaml": strings.NewReplacer("192.0.2.5\n", "192.0.2.250\n", "192.0.2.6\n", "192.0.2.250\n").Replace(read(t, "install-config.yaml")),
		"vipgen.yaml":         read(t, "vipgen.yaml") + "  loadBalancer: {type: External}\n",
	})
	testkit.Equal(t, before, must(t, render("")...))
}

// TestMoveToExternalLB follows the page from the nodes' VIPs to an external load balancer where
// OpenShift's own is installed: none of its pods is left, and their replacements are for
// running clusters only.
func TestMoveToExternalLB(t *testing.T) {
	_, page, _ := strings.Cut(docPage(t, "external-lb.md"), "## Moving a cluster to it\n")
	page, _, _ = strings.Cut(page, "## Moving back\n")
	documentedDir(t)
	managed := strings.Replace(read(t, "install-config.yaml"), "type: UserManaged", "type: OpenShiftManagedDefault", 1)
	testkit.Equal(t, 9, walk(t, page, managed, read(t, "vipgen.yaml")))
	if got := must(t, "validate"); !strings.Contains(got, "note: for a running cluster: its Infrastructure object keeps loadBalancer.type OpenShiftManagedDefault") {
		t.Error(got)
	}
	for pool, names := range map[string][]string{"master": {"haproxy", "keepalived"}, "worker": {"keepalived"}} {
		must(t, "render", "--dir", "files", "--format", "files", "--overwrite")
		for _, name := range names {
			if text := read(t, "files/files/"+pool+"/etc/kubernetes/manifests/"+name+".yaml"); !strings.HasPrefix(text, "# No pod: ") || strings.Count(text, "\n") != 1 {
				t.Errorf("%s of pool %s: %s", name, pool, text)
			}
		}
	}
	for _, args := range []string{"--install-dir ocp", "--format configmap", "--format extra-manifests --dir x", "--merge ocp/master.ign --role master"} {
		exits(t, command.Input, append([]string{"render"}, strings.Fields(args)...)...).reports("External is for a running cluster")
	}
}

// TestMoreDomainsNeedNothing: additional domains of routes, with or without appsDomain, add
// names and change no load balancer. A domain that another controller lists resolves to that
// one's VIPs.
func TestMoreDomainsNeedNothing(t *testing.T) {
	text := docPage(t, "external-lb.md")
	documentedDir(t)
	vip := testkit.ReadFile(t, "vipgen.yaml")
	render := strings.Fields("external-lb render --api-vip 192.0.2.250 --ingress-vip 192.0.2.250" + pairFlags)
	before := must(t, render...)
	plan := must(t, "external-lb", "plan")
	more := regexp.MustCompile("(?s)appsDomain.*?```yaml\n(spec:\n.*?)```").FindStringSubmatch(text)
	if more == nil {
		t.Fatal("no example")
	}
	lay(t, map[string]string{"vipgen.yaml": string(vip) + strings.TrimPrefix(more[1], "spec:\n")})
	testkit.Equal(t, before, must(t, render...))
	testkit.Equal(t, plan+"*.shop.example.com        the load balancer\n*.apps.example.net        the load balancer\n", must(t, "external-lb", "plan"))
	lay(t, map[string]string{"vipgen.yaml": string(vip) + "  loadBalancer: {type: External}\n  appsDomain: apps.example.net\n" +
		"  ingress: [{name: blue, vips: [192.0.2.249], domains: [apps.example.net]}]\n"})
	if got := must(t, "external-lb", "plan"); !regexp.MustCompile(`(?m)^\*\.apps\.example\.net +192\.0\.2\.249$`).MatchString(got) {
		t.Errorf("apps.example.net does not lead to the controller that lists it:\n%s", got)
	}
}

// TestOpenStackPage compares docs/vips.md with the script's dry run.
func TestOpenStackPage(t *testing.T) {
	text := docPage(t, "vips.md")
	documentedDir(t)
	hints := regexp.MustCompile(`(?m)^vipgen (openstack-hints .*) > hints.sh$`).FindStringSubmatch(text)
	if hints == nil {
		t.Fatal("no command")
	}
	lay(t, map[string]string{"hints.sh": must(t, strings.Fields(hints[1])...)})
	out, err := exec.Command("bash", "hints.sh").CombinedOutput()
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(text, hints[0])
	testkit.Equal(t, block(t, rest, "Read the script."), "$ bash hints.sh\n"+string(out))
}
