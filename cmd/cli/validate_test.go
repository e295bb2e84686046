package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/testkit"
)

// validate reports that the input is valid, the files that it read, and the result.
func TestValidateListsFiles(t *testing.T) {
	good(t)
	lay(t, map[string]string{"vipgen.yaml": vipConfigHead + "spec: {openshiftVersion: \"4.18\"}\n", "cluster-ingress-02-config.yml": clusterIngress})
	out := must(t, "validate")
	testkit.Contains(t, out,
		"install-config.yaml: valid, 1 warning\nRead: install-config.yaml, vipgen.yaml, cluster-ingress-02-config.yml\n",
		"\nnote: images by tag, not by digest: agent, keepalived, haproxy, coredns; pin them",
		"\nRenders: MachineConfigs 99-master-vipgen, 99-worker-vipgen; Ignition configs bootstrap, master, worker; manifests ",
	)
	testkit.Lacks(t, out, "openshiftVersion")
	code, out, stderr := run(goodInstallConfig, "validate", "-")
	for _, want := range []string{
		"standard input: valid, 1 warning\nRead: standard input\nNot read, as standard input has no folder: vipgen.yaml, cluster-ingress-02-config.yml. Name them by flags.\n",
		"no openshiftVersion: ", "needs 4.13 or later for UserManaged",
	} {
		if code != command.OK || strings.Count(out, want) != 1 {
			t.Errorf("exit code %d, %q: %d times %q in\n%s", code, stderr, strings.Count(out, want), want, out)
		}
	}
	_, out, _ = run(goodInstallConfig, "validate", "-", "-c", "vipgen.yaml")
	testkit.Contains(t, out, "\nRead: standard input, vipgen.yaml\nNot read, as standard input has no folder: cluster-ingress-02-config.yml.")
	code, out, _ = run(goodInstallConfig, "validate", "-", "-c", "vipgen.yaml", "-o", "json")
	var got validation
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != command.OK || strings.Join(got.Files, " ") != "- vipgen.yaml" {
		t.Errorf("exit code %d, %v, %v", code, err, got.Files)
	}
}

// ownImage is the vipgen.yaml of a cluster whose nodes can pull the agent.
const ownImage = vipConfigHead + "spec: {images: {agent: registry.example.com/a:1}}\n"

// An image that no registry has is a warning, with a remedy in two lines, and stops commands
// whose output is installed on nodes.
func TestDefaultImage(t *testing.T) {
	const told = "spec.images.agent: found quay.io/vipgen/vipgen-agent:v1alpha1, which is not published, expected an image in a registry that nodes reach [default-image]\n" +
		"  1. skopeo copy --all --preserve-digests oci-archive:vipgen-agent.oci.tar docker://registry.example.com/vipgen-agent:v1.2.3\n" +
		"  2. in vipgen.yaml: spec: {images: {agent: 'registry.example.com/vipgen-agent@sha256:...'}}, with the digest in vipgen-agent.digest\n"
	good(t)
	lay(t, map[string]string{
		"ocp/manifests/x.yaml": "", "master.ign": `{"ignition": {"version": "3.2.0"}}`,
		"own.yaml": ownImage,
	})
	before := snapshot(t, ".")
	testkit.Equal(t, "install-config.yaml: warning: "+told, exits(t, command.OK, "validate").report)
	for _, args := range []string{"render --install-dir ocp", "render --merge master.ign"} {
		report := exits(t, command.Input, strings.Fields(args)...).report
		testkit.Equal(testkit.In(t, args), "install-config.yaml: error: "+told+"vipgen: 1 problem; nothing was written\n", report)
		testkit.Equal(testkit.In(t, args), before, snapshot(t, "."))
	}
	must(t, "validate", "--strict", "-c", "own.yaml")
	must(t, "render", "--install-dir", "ocp", "-c", "own.yaml")
	must(t, "render", "--merge", "master.ign", "--allow-default-image")
}

// With --strict, warnings have their own exit code; errors keep theirs.
func TestStrict(t *testing.T) {
	good(t)
	lay(t, map[string]string{
		"warned.yaml": vipConfigHead + "spec: {openshiftVersion: \"4.18\", images: {agent: registry.example.com/a@sha256:" + strings.Repeat("0", 64) + ", release: \"4.17.1\", haproxy: registry.example.com/h}}\n",
		"fine.yaml":   vipConfigHead + "spec: {images: {agent: registry.example.com/a@sha256:" + strings.Repeat("0", 64) + "}}\n",
		"wrong.yaml":  vipConfigHead + "spec: {apiVIP: x}\n",
		"hosts.yaml":  "apiVersion: v1beta1\nkind: AgentConfig\nrendezvousIP: 192.0.2.10\n",
	})
	for args, want := range map[string]int{
		"-c fine.yaml --strict": command.OK, "-c warned.yaml": command.OK, "-c warned.yaml --strict": command.Finding,
		"-c fine.yaml --agent-config hosts.yaml": command.OK, "-c fine.yaml --agent-config hosts.yaml --strict": command.Finding, // rendezvous-vip
		"-c warned.yaml --strict -o json": command.Finding, "-c wrong.yaml --strict": command.Input, "-c wrong.yaml --strict -o json": command.Input,
	} {
		exits(t, want, append([]string{"validate"}, strings.Fields(args)...)...)
	}
}

// All formats of printed objects hold the same objects.
func TestObjectsAsJSON(t *testing.T) {
	good(t)
	for _, args := range [][]string{{"render"}, {"render", "--role", "worker"}, strings.Fields("metallb --address 192.0.2.17 " + threeNodes)} {
		var list struct {
			APIVersion, Kind string
			Items            []struct{ Kind string }
		}
		documents := strings.Count("\n"+must(t, args...), "\nkind: ")
		if err := json.Unmarshal([]byte(must(t, append(args, "-o", "json")...)), &list); err != nil || list.Kind != "List" || len(list.Items) != documents {
			t.Errorf("%q: %v, %s of %d items, want %d", args, err, list.Kind, len(list.Items), documents)
		}
	}
}

// Completion takes pools and nodes from the input.
func TestCompletionFromInput(t *testing.T) {
	good(t)
	lay(t, map[string]string{
		"vipgen.yaml": vipConfigHead + "spec: {pools: [{name: infra}]}\n",
		"agent-config.yaml": `apiVersion: v1beta1
kind: AgentConfig
metadata: {name: demo}
rendezvousIP: 192.0.2.10
hosts:
- hostname: cp-a
  role: master
  networkConfig: {interfaces: [{name: ens3, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}]}
`,
	})
	for line, want := range map[string]string{
		"render --role|":                        "bootstrap\nmaster\nworker\ninfra\n",
		"render --role|worker,i":                "worker,infra\n",
		"ports install-config.yaml --role|inf":  "infra\n",
		"preview install-config.yaml --role|ma": "master\n",
		"migrate plan --without|cp-":            "cp-a\n",
		"preview --node|":                       "bootstrap\ncp-a\n",
		"ports no-such.yaml --role|":            "master\nworker\narbiter\n",
	} {
		words, last, _ := strings.Cut(line, "|")
		out := must(t, append(append([]string{"__complete"}, strings.Fields(words)...), last)...)
		got, _, _ := strings.Cut(out, ":4")
		testkit.Equal(testkit.In(t, line), want, got)
	}
	preview := strings.Fields("preview --node cp-a --interface ens3 --peer cp-b=192.0.2.11 --role")
	for role, want := range map[string]string{"worker": "--role worker: the input says that cp-a is a master", "arbiter": "is a master", "infra": "is a master"} {
		exits(t, command.Input, append(preview, role)...).reports(want)
	}
	for _, role := range []string{"master", "bootstrap"} {
		must(t, append(preview, role)...)
	}
}

// Pinned images follow the release: those of the release information are printed for
// vipgen.yaml, and outdated ones are named.
func TestImagesFollowTheRelease(t *testing.T) {
	documentedDir(t)
	good := must(t, "images", "install-config.yaml", "--release-info", "release.json", "-o", "vipconfig")
	testkit.Contains(t, good, "spec:\n  images:\n    agent: ", "\n    keepalived: registry.example.com/keepalived:4.18\n    release: 4.18.3\n")
	for version, want := range map[string]string{"4.18": "", "4.19": "spec.images.release: found images of OpenShift 4.18.3, expected those of OpenShift 4.19"} {
		lay(t, map[string]string{"vipgen.yaml": vipConfigHead + good + "  openshiftVersion: \"" + version + "\"\n"})
		got := exits(t, command.OK, "validate", "install-config.yaml").reports(want)
		testkit.Equal(t, want != "", strings.Contains(got.report, "[other-release]"))
	}
	exits(t, command.Input, "images", "-o", "vipconfig").reports("needs --release-info")
}

const clusterIngress = "apiVersion: config.openshift.io/v1\nkind: Ingress\nmetadata: {name: cluster}\nspec:\n  domain: apps.demo.example.com\n  appsDomain: apps.example.net\n"

// The domains of routes in an asset directory are compared with the names that nodes resolve.
func TestDomainsOfAnAssetDirectory(t *testing.T) {
	const warning = `ocp/manifests/cluster-ingress-02-config.yml:6:15: warning: spec.appsDomain: found apps.example.net, expected a domain that the cluster's nodes resolve`
	for name, tt := range map[string]struct {
		files map[string]string
		warns bool
	}{
		"nobody knows of it":           {nil, true},
		"vipgen.yaml has it":           {map[string]string{"vipgen.yaml": fleetHead + "spec: {appsDomain: apps.example.net}\n"}, false},
		"a copy beside":                {map[string]string{input.ClusterIngressName: clusterIngress}, false},
		"an ingress controller has it": {map[string]string{"vipgen.yaml": fleetHead + "spec: {ingress: [{name: a, vips: [192.0.2.9], domains: [apps.example.net]}]}\n"}, false},
		"its names lead elsewhere":     {map[string]string{"vipgen.yaml": fleetHead + "spec: {dns: {records: [{name: '*.apps.example.net', addresses: [198.51.100.1]}]}}\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			good(t)
			lay(t, map[string]string{"ocp/manifests/" + input.ClusterIngressName: clusterIngress})
			lay(t, tt.files)
			got := exits(t, command.OK, "render", "--allow-default-image", "--install-dir", "ocp")
			testkit.Equal(t, tt.warns, strings.Contains(got.report, warning))
		})
	}
	good(t)
	lay(t, map[string]string{"ocp/manifests/" + input.ClusterIngressName: "kind: Other\n"})
	exits(t, command.Input, "render", "--allow-default-image", "--install-dir", "ocp").reports(`found "Other", expected "Ingress"`)
}

const mirrored = `imageDigestSources: [{source: quay.io/openshift, mirrors: [registry.example.com/openshift]}]
`

// fileAndCode matches a line of a report.
var fileAndCode = regexp.MustCompile(`(?m)^(?:([^\s:]+\.yaml):)?.* \[([a-z-]+)\]$`)

// Advice on images is printed once and last, with its position, after warnings about flags and
// about other files and clusters; and not next to an error, wherever that was found.
func TestUnpinnedImagesComeLast(t *testing.T) {
	t.Chdir(t.TempDir())
	outside := strings.ReplaceAll(goodInstallConfig, "192.0.2.0/24", "198.51.100.0/24")
	lay(t, map[string]string{
		"install-config.yaml":       goodInstallConfig + mirrored,
		"two/a/install-config.yaml": mirrored + goodInstallConfig,
		"two/b/install-config.yaml": outside,
	})
	for _, tt := range []struct {
		args string
		code int
		want string // ends of the report's lines: codes
	}{
		{"render install-config.yaml", command.OK, "install-config.yaml unpinned-image"},
		{"validate install-config.yaml", command.OK, "install-config.yaml default-image, install-config.yaml unpinned-image"},
		{"explain install-config.yaml", command.OK, "install-config.yaml unpinned-image"},
		{"render two", command.OK, "two/b/install-config.yaml vip-outside-network, two/a/install-config.yaml unpinned-image"},
		{"validate two/a --openshift-version 4.12", command.Input, "two/a/install-config.yaml unknown-field, two/a/install-config.yaml needs-version"},
		{"metallb install-config.yaml --address 203.0.113.9 --selector app=api --namespace apis", command.OK, " vip-outside-network, install-config.yaml unpinned-image"},
	} {
		report := exits(t, tt.code, strings.Fields(tt.args)...).report
		var got []string
		for _, m := range fileAndCode.FindAllStringSubmatch(report, -1) {
			got = append(got, m[1]+" "+m[2])
		}
		testkit.Equal(testkit.In(t, tt.args, report), tt.want, strings.Join(got, ", "))
	}
}
