package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// good changes into a directory with a good install-config.
func good(t *testing.T) {
	t.Helper()
	testkit.Deterministic(t)
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"install-config.yaml": goodInstallConfig})
}

// must runs a command line that must succeed, and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := run("", args...)
	if code != command.OK {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr)
	}
	return stdout
}

// printed holds the output of a command line.
type printed struct {
	testing.TB
	out, report string
}

// exits runs a command line that must end with the exit code, and with a report if it refuses.
func exits(t testing.TB, want int, args ...string) printed {
	t.Helper()
	code, out, report := run("", args...)
	refuses := (want == command.Input || want == command.Failed) && !slices.Contains(args, "json")
	if code != want || refuses && report == "" {
		t.Errorf("vipgen %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, report)
	}
	return printed{t, out, report}
}

// has fails the test for each missing part of standard output, reports for those of standard
// error, lacks for those on either of them.
func (p printed) has(parts ...string) printed {
	p.Helper()
	testkit.Contains(p.TB, p.out, parts...)
	return p
}

func (p printed) reports(parts ...string) printed {
	p.Helper()
	testkit.Contains(p.TB, p.report, parts...)
	return p
}

// begins fails the test unless standard error begins with a text, ends unless it ends with it.
func (p printed) begins(text string) printed {
	p.Helper()
	if !strings.HasPrefix(p.report, text) {
		p.Errorf("does not begin with %q:\n%s", text, p.report)
	}
	return p
}

func (p printed) ends(text string) printed {
	p.Helper()
	if !strings.HasSuffix(p.report, text) {
		p.Errorf("does not end with %q:\n%s", text, p.report)
	}
	return p
}

func (p printed) lacks(parts ...string) printed {
	p.Helper()
	for _, part := range parts {
		testkit.Lacks(p, p.out+p.report, part)
	}
	return p
}

// silently fails the test if standard output has any text, cleanly if standard error has.
func (p printed) silently() printed {
	p.Helper()
	testkit.Equal(p.TB, "", p.out)
	return p
}

func (p printed) cleanly() printed {
	p.Helper()
	testkit.Equal(p.TB, "", p.report)
	return p
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		args string
		want int
	}{
		{"", command.OK},
		{"render", command.OK},
		{"render .", command.OK},
		{"render install-config.yaml --dir out", command.OK},
		{"render install-config.yaml --dir out --check", command.OK},
		{"render install-config.yaml --dir elsewhere --check", command.Finding},
		{"render install-config.yaml --install-dir ocp --check", command.Finding},
		{"render install-config.yaml --merge a.ign --role worker --check", command.Finding},
		{"render install-config.yaml --allow-default-image --merge a.ign --role worker", command.OK},
		{"render install-config.yaml --merge a.ign --role worker --check", command.OK},
		{"render install-config.yaml --os flatcar --format ignition --role master", command.OK},
		{"render install-config.yaml --dir a.ign", command.Failed},
		{"render install-config.yaml --install-dir a.ign", command.Input},
		{"validate", command.OK},
		{"validate -c ocp/manifests/x.yaml --openshift-version 3.11", command.Failed},
		{"images", command.OK},
		{"inspect out", command.OK},
		{"inspect out --dir files", command.OK},
		{"inspect install-config.yaml", command.Input},
		{"inspect out --dir a.ign", command.Failed},
		{"preview", command.Input},
		{"preview --facts no-such.yaml", command.Failed},
		{"--version", command.OK},
		{"help lab", command.OK},
	}
	good(t)
	lay(t, map[string]string{"a.ign": `{"ignition":{"version":"3.2.0"}}`, "ocp/manifests/x.yml": "", "empty/x": ""})
	for _, tt := range tests {
		exits(t, tt.want, strings.Fields(tt.args)...)
	}
}

// A closed output stream is a failure, not a usage error.
func TestExitCodeOfBrokenPipe(t *testing.T) {
	good(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer full.Close()
	for _, args := range [][]string{{"render"}, {"schema"}, {"vr-ids", "a"}, {"images"}, {"validate"}, {"inspect", "a.ign"}} {
		lay(t, map[string]string{"a.ign": `{"ignition":{"version":"3.2.0"}}`})
		var errOut strings.Builder
		if code := Run(args, strings.NewReader(""), full, &errOut); code != command.Failed || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%q: exit code %d, %q", args, code, errOut.String())
		}
	}
}

func TestJSONOutputs(t *testing.T) {
	tests := []struct {
		args string
		code int
		want map[string]any // some of the fields
	}{
		{"vr-ids cnf10 cnf11 -o json", command.Finding, map[string]any{
			"kind": "DerivedRouterIDs",
			"clusters": []any{
				map[string]any{"cluster": "cnf10", "api": 147., "ingress": 2.},
				map[string]any{"cluster": "cnf11", "api": 228., "ingress": 147.},
			},
			"collisions": []any{map[string]any{"id": 147., "users": []any{"cnf10's API", "cnf11's ingress"}}},
		}},
		{"vr-ids vmware -o json", command.OK, map[string]any{
			"clusters":   []any{map[string]any{"cluster": "vmware", "api": 109., "ingress": 124.}},
			"collisions": []any{},
		}},
		{"validate -c own.yaml -o json", command.OK, map[string]any{
			"kind": "Validation", "valid": true, "problems": []any{}, "files": []any{"install-config.yaml", "own.yaml"},
			"renders": []any{
				map[string]any{"kind": "MachineConfigs", "names": []any{"99-master-vipgen", "99-worker-vipgen"}},
				map[string]any{"kind": "Ignition configs", "names": []any{"bootstrap", "master", "worker"}},
				map[string]any{"kind": "manifests", "names": []any{"clusterrole", "clusterrolebinding", "role", "rolebinding"}},
			},
		}},
		{"validate no-such.yaml -o json", command.Failed, map[string]any{"valid": false, "cluster": nil, "files": []any{}, "problems": []any{map[string]any{
			"file": "no-such.yaml", "severity": "error", "code": "unreadable", "found": "no such file or directory", "expected": "a file that can be read"}}}},
		{"validate clusters -o json", command.Input, map[string]any{"kind": "ValidationList", "valid": false}},
		{"images -o json --openshift-version 4.18", command.OK, map[string]any{
			"apiVersion": "vipgen.io/v1alpha1", "kind": "Images",
			"agent":      "quay.io/vipgen/vipgen-agent:v1alpha1",
			"keepalived": "quay.io/openshift/origin-keepalived-ipfailover:4.18",
			"haproxy":    "quay.io/openshift/origin-haproxy-router:4.18",
			"coredns":    "quay.io/openshift/origin-coredns:4.18",
		}},
	}
	good(t)
	lay(t, map[string]string{"own.yaml": ownImage,
		"clusters/a/install-config.yaml": goodInstallConfig, "clusters/b/install-config.yaml": "apiVersion: v1\n"})
	for _, tt := range tests {
		var got map[string]any
		testkit.Must(t, json.Unmarshal([]byte(exits(t, tt.code, strings.Fields(tt.args)...).cleanly().out), &got))
		for field, want := range tt.want {
			testkit.Equal(testkit.In(t, tt.args, field), want, got[field])
		}
	}
	for _, args := range []string{"version -o json", "schema", "schema --of diff"} {
		if out := must(t, strings.Fields(args)...); !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON: %s", args, out)
		}
	}
}

// Several clusters have a verdict each, and the exit code is that of the worst.
func TestValidateFleet(t *testing.T) {
	good(t)
	lay(t, map[string]string{
		"c/a/install-config.yaml": goodInstallConfig, "c/a/vipgen.yaml": ownImage, "c/b/install-config.yaml": goodInstallConfig,
		"d/a/install-config.yaml": goodInstallConfig, "d/b/install-config.yaml": "apiVersion: v1\n",
	})
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"c", "c/a/install-config.yaml: valid\nc/b/install-config.yaml: valid, 1 warning\n2 of 2 clusters valid\n", command.OK},
		{"c --strict", "2 of 2 clusters valid\n", command.Finding},
		{"c/a d/b", "d/b/install-config.yaml: ", command.Input},
		{"d --strict", "1 of 2 clusters valid\n", command.Input},
		{"c -c x.yaml", "", command.Input},
		{"c/a", "Cluster demo.example.com", command.OK},
		{"e", "", command.Failed},
	} {
		code, out, stderr := run("", append([]string{"validate"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(out, tt.want) || tt.want == "" && out != "" {
			t.Errorf("%s: exit code %d\n%s%s", tt.args, code, out, stderr)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := must(t, "completion", shell); !strings.Contains(out, "vipgen") || len(out) < 1000 {
			t.Errorf("%s: %.200s", shell, out)
		}
	}
	for args, want := range map[string]string{
		"render --os ":                   "fcos\nflatcar\nopenshift\n",
		"render --format m":              "machineconfig\n",
		"render --openshift-version 4.2": "4.20\n4.21\n4.22\n4.23\n",
		"render x":                       "yaml\nyml\n:8\n",
		"preview --profile ":             "start\ntarget\n",
		"external-lb ":                   "plan\tShow what an external load balancer has to do\n",
		"external-lb plan --serve ":      "api\nmachine-config\ningress\n",
		"external-lb render --os ":       "fcos\nopenshift\n",
		"openstack-hints -o ":            "script\nterraform\njson\n",
		"impo":                           "import\t",
		"import --dir ":                  ":16\n", // directories
		"metallb --mode ":                "bgp\nl2\n",
		"metallb --selector ":            "apiserver=true\n",
		"check-endpoint a --path ":       "/livez\n/readyz\n",
		"check-endpoint a --ca ":         "crt\npem\n",
		"check-endpoint ":                ":4\n",
	} {
		out := must(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		for line := range strings.Lines(want) {
			testkit.Contains(testkit.In(t, args), "\n"+out, "\n"+line)
		}
	}
}

// Drift is shown as differences on nodes, not as changed base64.
func TestCheck(t *testing.T) {
	good(t)
	must(t, "render", "--dir", "out", "--format", "machineconfig,ignition")
	must(t, "render", "--dir", "out", "--format", "machineconfig,ignition", "--check")
	lay(t, map[string]string{
		"install-config.yaml": strings.Replace(goodInstallConfig, "ingressVIPs: [192.0.2.3]", "ingressVIPs: [192.0.2.4]", 1),
		"vipgen.yaml":         vipConfigHead + "spec: {pools: [{name: infra}]}\n",
	})
	before := snapshot(t, ".")
	exits(t, command.Finding, "render", "--dir", "out", "--format", "machineconfig", "--check").cleanly().lacks("base64", "data:").has(
		"out/machineconfigs/99-master-vipgen.yaml: differs\n  /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml\n    --- in the directory\n    +++ rendered\n",
		"\n    -    - 192.0.2.3\n    +    - 192.0.2.4\n",
		"out/machineconfigs/99-worker-vipgen-infra.yaml: missing\n",
		"out/ignition/worker.ign: no longer rendered\n",
	)
	testkit.Equal(t, before, snapshot(t, "."))
}

// Merging twice equals merging once, and content of others is replaced only on request.
func TestMerge(t *testing.T) {
	good(t)
	lay(t, map[string]string{"master.ign": `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/other","mode":420,"contents":{"source":"data:,mine"}}]}}`})
	must(t, "render", "--allow-default-image", "--merge", "master.ign")
	once := read(t, "master.ign")
	testkit.Contains(t, once, "data:,mine", "cluster.yaml")
	must(t, "render", "--allow-default-image", "--merge", "master.ign")
	testkit.Equal(t, once, read(t, "master.ign"))
	lay(t, map[string]string{"install-config.yaml": strings.Replace(goodInstallConfig, "[192.0.2.3]", "[192.0.2.4]", 1)})
	exits(t, command.Input, "render", "--allow-default-image", "--merge", "master.ign") // a conflict
	testkit.Equal(t, once, read(t, "master.ign"))
	must(t, "render", "--allow-default-image", "--merge", "master.ign", "--overwrite")
	if read(t, "master.ign") == once {
		t.Error("--overwrite replaced nothing")
	}
}

// The files of one node, by flags.
func TestPreview(t *testing.T) {
	good(t)
	args := strings.Fields("preview --node m0 --role master --interface eno1 --address 192.0.2.10/24 --peer m1=192.0.2.11 --peer w0:worker=192.0.2.20 --upstream 198.51.100.1")
	all := must(t, args...)
	testkit.Contains(t, all,
		"##### /etc/keepalived/keepalived.conf\n", "##### /etc/haproxy/haproxy.cfg\n", "##### /etc/coredns/Corefile\n", "##### /etc/coredns/hosts\n",
		"    unicast_src_ip 192.0.2.10\n", "    server m1 192.0.2.11:6443\n", "forward . 198.51.100.1 {\n", "192.0.2.20 w0 w0.demo.example.com\n",
	)
	if one := must(t, append(args, "--file", "haproxy.cfg")...); !strings.Contains(all, one) || strings.Contains(one, "#####") {
		t.Errorf("--file haproxy.cfg:\n%s", one)
	}
	must(t, append(args, "--dir", "out")...)
	if snapshot(t, "out")["out/etc/haproxy/haproxy.cfg"] == "" {
		t.Error("--dir wrote no haproxy.cfg")
	}
	for flags, want := range map[string]string{
		"--file nope":                  "this node has keepalived.conf, haproxy.cfg, Corefile, hosts",
		"--profile slow":               "expected start or target",
		"--role infra":                 "this cluster has bootstrap, master, worker",
		"--peer m1=192.0.2.12":         `found "m1", expected each node once`,
		"--address 192.0.2.10":         "expected an address with its prefix length",
		"--upstream dns":               "expected an address",
		"--peer m2":                    "expected name[:role]=address[,address]",
		"--facts facts.yaml":           "--facts and --node cannot be used together",
		"--interface toolongname12345": "at most 15",
	} {
		exits(t, command.Input, append(args, strings.Fields(flags)...)...).reports(want)
	}
	lay(t, map[string]string{"facts.yaml": "name: m0\nrole: master\ninterfaces: []\nupstreems: []\npeers: [{name: a b, role: master, addresses: []}]\n"})
	exits(t, command.Input, "preview", "--facts", "facts.yaml").begins("facts.yaml:4:1: error: upstreems: found \"upstreems\" (did you mean \"upstreams\"?) [unknown-field]\n")
}
