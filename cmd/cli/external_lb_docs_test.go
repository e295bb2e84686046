package cli

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
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

// TestExternalPage compares docs/external-lb.md with the output for the example.
func TestExternalPage(t *testing.T) {
	text := docPage(t, "external-lb.md")
	documentedDir(t)
	read := func(name string) string {
		return string(testkit.ReadFile(t, name))
	}
	install, agent, vip := read("install-config.yaml"), read("agent-config.yaml"), read("vipgen.yaml")
	cluster := func(dir, install, vip string) {
		lay(t, map[string]string{dir + "/install-config.yaml": install, dir + "/agent-config.yaml": agent, dir + "/vipgen.yaml": vip})
		must(t, "render", dir, "--dir", dir+"/rendered", "--format", "machineconfig,ignition,files")
	}
	vips := func(api, ingress string) string {
		out := strings.Replace(install, "192.0.2.5\n", api+"\n", 1)
		return strings.Replace(out, "192.0.2.6\n", ingress+"\n", 1)
	}
	const outside = "  loadBalancer:\n    type: External\n"
	cluster("in", install, vip)
	cluster("out", vips("192.0.2.250", "192.0.2.250"), vip+outside)
	cluster("back", vips("192.0.2.7", "192.0.2.8"), vip)

	t.Run("plan", func(t *testing.T) {
		testkit.Equal(t, block(t, text, "## What it has to do\n"), must(t, "external-lb", "plan", "in"))
	})
	t.Run("what stays", func(t *testing.T) {
		in, out := snapshot(t, "in/rendered/files/master"), snapshot(t, "out/rendered/files/master")
		for p, data := range out {
			p = strings.Replace(p, "out/", "in/", 1)
			if in[p] != data && !strings.HasSuffix(p, "/cluster.yaml") {
				t.Errorf("%s is not as before", p)
			}
			delete(in, p)
		}
		for p := range in {
			if !strings.Contains(p, "keepalived") && !strings.Contains(p, "haproxy") {
				t.Errorf("%s is gone", p)
			}
		}
		for _, name := range []string{"coredns.yaml", "mdns-publisher.yaml", "nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(out)), func(p string) bool { return strings.HasSuffix(p, "/"+name) }) {
				t.Errorf("%s is gone", name)
			}
		}
	})
	t.Run("nodes answer with the new addresses", func(t *testing.T) {
		corefile := must(t, "preview", "out", "--node", "master-0", "--interface", "ens3", "--file", "Corefile")
		testkit.Contains(t, corefile, "api.demo.example.com", "api-int.demo.example.com", "apps.demo.example.com")
		testkit.Contains(t, corefile, "192.0.2.250")
		testkit.Lacks(t, corefile, "192.0.2.5 ")
	})
	t.Run("back", func(t *testing.T) {
		in, back := snapshot(t, "in/rendered/files"), snapshot(t, "back/rendered/files")
		if len(in) != len(back) {
			t.Errorf("%d files, then %d", len(in), len(back))
		}
		addresses := strings.NewReplacer("192.0.2.7", "192.0.2.5", "192.0.2.8", "192.0.2.6")
		for p, data := range back {
			want := in[strings.Replace(p, "back/", "in/", 1)]
			if strings.HasSuffix(p, "/cluster.yaml") {
				data = addresses.Replace(data)
			}
			testkit.Equal(testkit.In(t, p), want, data)
		}
	})
	t.Run("addresses of the input", func(t *testing.T) {
		flags := strings.Fields(pairFlags)
		before := must(t, append([]string{"external-lb", "render", "in", "--api-vip", "192.0.2.250", "--ingress-vip", "192.0.2.250"}, flags...)...)
		testkit.Equal(t, before, must(t, append([]string{"external-lb", "render", "out"}, flags...)...))
		exits(t, command.Input, append([]string{"external-lb", "render", "back", "--api-vip", "192.0.2.7"}, flags...)...).reports("[vip-taken]")
	})
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
	if got := must(t, "validate"); !strings.Contains(got, "note: for a running cluster: its Infrastructure object goes on saying loadBalancer.type OpenShiftManagedDefault") {
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
