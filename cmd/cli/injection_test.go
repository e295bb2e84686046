package cli

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// hostile is text that would be syntax somewhere: in a daemon's configuration,
// a systemd unit, a shell, YAML, a template or a terminal. Every piece holds the
// marker, so that it can be found in outputs.
var hostile = map[string]string{
	"newline":             "m4rk\nvrrp_script x {\n  script \"/bin/true\"\n}",
	"line separator":      "m4rk\u2028x",
	"brace":               "m4rk}",
	"double quote":        `m4rk" x`,
	"backslash":           `m4rk\x`,
	"command":             "$(m4rk)",
	"backticks":           "`m4rk`",
	"caddy variable":      "{$m4rk}",
	"template":            "{{ .m4rk }}",
	"escaped template":    "{{`{{ m4rk }}`}}",
	"systemd specifier":   "m4rk%n",
	"space":               "m4rk x",
	"semicolon":           "m4rk;x",
	"keepalived include":  "@m4rk",
	"option":              "--m4rk=x",
	"path":                "../m4rk",
	"null":                "m4rk\x00",
	"escape":              "m4rk\x1b[2J",
	"right to left":       "m4rk\u202ex",
	"look-alike":          "m4rk\u0430", // Cyrillic a
	"not UTF-8":           "m4rk\xff",
	"YAML tag":            "!!python/object:m4rk",
	"YAML document":       "m4rk\n---\nkind: Secret",
	"very long":           strings.Repeat("m4rk", 10000),
	"HTML":                "<m4rk>",
	"format verb":         "m4rk%s%d",
	"leading hyphen":      "-m4rk",
	"spaces around":       " m4rk ",
	"underscore and mark": "m4rk_!",
}

// yamlText writes any text as a YAML scalar that reads as it.
func yamlText(s string) string {
	q := strconv.QuoteToASCII(s)
	// Go's escapes are YAML's, but for a byte that is not UTF-8: YAML's \xff is a
	// character.
	return strings.ReplaceAll(q, `\x7f`, `\u007f`)
}

// sinks are the fields whose text reaches an output, each with the file through which it does.
// %s stands for the text as a YAML scalar.
var sinks = []struct {
	name string
	file string // a name of the table replaced
	from string
	to   string
}{
	{"cluster name", "install-config.yaml", "name: demo", "name: %s"},
	{"base domain", "install-config.yaml", "baseDomain: example.com", "baseDomain: %s"},
	{"host name", "install-config.yaml", "    apiVIPs", "    hosts:\n    - name: %s\n      networkConfig: {interfaces: [{name: eno1, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}]}\n    apiVIPs"},
	{"role of a host", "install-config.yaml", "    apiVIPs", "    hosts: [{name: a, role: %s}]\n    apiVIPs"},
	{"compute pool", "install-config.yaml", "networking:", "compute: [{name: %s, replicas: 1}]\nnetworking:"},
	{"API VIP", "install-config.yaml", "apiVIPs: [192.0.2.2]", "apiVIPs: [%s]"},
	{"zone of an API VIP", "install-config.yaml", "apiVIPs: [192.0.2.2]", "apiVIPs: [%s]"},
	{"machine network", "install-config.yaml", "cidr: 192.0.2.0/24", "cidr: %s"},
	{"load balancer", "install-config.yaml", "type: UserManaged", "type: %s"},
	{"platform", "install-config.yaml", "  baremetal:", "  %s:"},
	{"agent host name", "agent-config.yaml", "", "hosts:\n- hostname: %s\n  networkConfig: {interfaces: [{name: eno1, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}]}\n"},
	{"rendezvous host", "agent-config.yaml", "", "rendezvousIP: %s\n"},
	{"pool", "vipgen.yaml", "", "spec: {pools: [{name: %s}]}\n"},
	{"ingress controller", "vipgen.yaml", "", "spec: {ingress: [{name: %s, vips: [192.0.2.8], domains: [x.example.com]}]}\n"},
	{"ingress domain", "vipgen.yaml", "", "spec: {ingress: [{name: blue, vips: [192.0.2.8], domains: [%s]}]}\n"},
	{"DNS record", "vipgen.yaml", "", "spec: {dns: {records: [{name: %s, addresses: [192.0.2.9]}]}}\n"},
	{"DNS record below a name", "vipgen.yaml", "", "spec: {dns: {records: [{name: *.%s, addresses: [192.0.2.9]}]}}\n"},
	{"upstream", "vipgen.yaml", "", "spec: {dns: {upstreams: [%s]}}\n"},
	{"selector key", "vipgen.yaml", "", "spec: {ingress: [{name: default, nodeSelector: {%s: \"\"}}]}\n"},
	{"selector value", "vipgen.yaml", "", "spec: {ingress: [{name: default, nodeSelector: {a: %s}}]}\n"},
	{"agent image", "vipgen.yaml", "", "spec: {images: {agent: %s}}\n"},
	{"keepalived image", "vipgen.yaml", "", "spec: {images: {keepalived: %s}}\n"},
	{"profile", "vipgen.yaml", "", "spec: {vrrp: {profile: %s}}\n"},
	{"interval", "vipgen.yaml", "", "spec: {vrrp: {profile: custom, advertInterval: %s}}\n"},
	{"version", "vipgen.yaml", "", "spec: {openshiftVersion: %s}\n"},
	{"unknown field", "vipgen.yaml", "", "spec: {%s: 1}\n"},
	{"fact: name", "facts.yaml", "name: node", "name: %s"},
	{"fact: role", "facts.yaml", "role: master", "role: %s"},
	{"fact: interface", "facts.yaml", "name: eno1", "name: %s"},
	{"fact: peer", "facts.yaml", "name: peer", "name: %s"},
	{"fact: role of a peer", "facts.yaml", "role: worker", "role: %s"},
	{"fact: upstream", "facts.yaml", "upstreams: [198.51.100.1]", "upstreams: [%s]"},
	{"fact: zone of an upstream", "facts.yaml", "upstreams: [198.51.100.1]", "upstreams: [%s]"},
	{"fact: label", "facts.yaml", "labels: {a: b}", "labels: {a: %s}"},
	{"fact: mode", "facts.yaml", "mode: unicast", "mode: %s"},
}

//go:embed testdata/facts.yaml
var goodFacts string

const vipConfigHead = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\n"

var replaced = map[string]string{
	"install-config.yaml": goodInstallConfig,
	"agent-config.yaml":   "apiVersion: v1beta1\nkind: AgentConfig\n",
	"vipgen.yaml":         vipConfigHead,
	"facts.yaml":          goodFacts,
}

// zoned is an address to which a zone can be added.
const zoned = "fe80::1%"

// inertWord matches the harmless output of a hostile text: nothing of it is syntax.
var inertWord = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// Whatever the text of a field, it is refused with a printable report, or rendered as inert
// text.
func TestInjection(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range hostile {
				if strings.HasPrefix(sink.name, "zone of") || strings.HasSuffix(sink.name, "zone of an upstream") {
					text = zoned + text
				}
				value := yamlText(text)
				to := strings.ReplaceAll(sink.to, "*.%s", yamlText("*."+text))
				to = strings.ReplaceAll(to, "%s", value)
				files := map[string]string{"install-config.yaml": goodInstallConfig, "facts.yaml": goodFacts}
				files[sink.file] = replaced[sink.file] + to
				if sink.from != "" {
					files[sink.file] = strings.Replace(replaced[sink.file], sink.from, to, 1)
				}
				lay(t, files)
				args := []string{"render", "--format", "files", "--dir", "out"}
				if sink.file == "facts.yaml" {
					args = []string{"preview", "--facts", "facts.yaml", "--dir", "out"}
				}
				code, stdout, stderr := run("", args...)
				checkHarmless(t, name, text, code, stdout, stderr)
			}
		})
	}
}

func checkHarmless(t *testing.T, name, text string, code int, stdout, stderr string) {
	t.Helper()
	if unprintable.MatchString(stderr) || len(stderr) > 4000 {
		t.Errorf("%s: the report is not fit to print: %.4000q", name, stderr)
	}
	switch code {
	case command.Input:
		if stdout != "" || !strings.Contains(stderr, "[") {
			t.Errorf("%s: refused without a report: %q %q", name, stdout, stderr)
		}
	case command.OK:
		for path, data := range snapshot(t, "out") {
			if strings.Contains(data, text) && !inertWord.MatchString(strings.TrimPrefix(text, zoned)) {
				t.Errorf("%s: reaches %s:\n%s", name, path, data)
			}
		}
	default:
		t.Errorf("%s: exit code %d, %.1000q", name, code, stderr)
	}
}

// The command line is harmless too.
func TestInjectionArguments(t *testing.T) {
	base := []string{"preview", "--role", "master", "--node", "node", "--interface", "eno1", "--address", "192.0.2.10/24"}
	outside := []string{"external-lb", "render", "--node", "m0=192.0.2.10", "--node", "w0:worker=192.0.2.20"}
	pair := append(slices.Clip(outside), "--api-vip", "192.0.2.250", "--interface", "eno1", "--balancer", "a=192.0.2.251/24")
	outside, pair = slices.Clip(outside), slices.Clip(pair)
	commands := map[string]func(text string) []string{
		"install-config": func(s string) []string { return []string{"render", s} },
		"config":         func(s string) []string { return []string{"render", "--config", s} },
		"role":           func(s string) []string { return []string{"render", "--role", s} },
		"format":         func(s string) []string { return []string{"render", "--format", s} },
		"version":        func(s string) []string { return []string{"render", "--openshift-version", s} },
		"node":           func(s string) []string { return append(base, "--node", s) },
		"interface":      func(s string) []string { return append(base, "--interface", s) },
		"address":        func(s string) []string { return append(base, "--address", s) },
		"peer":           func(s string) []string { return append(base, "--peer", s+"=192.0.2.11") },
		"role of a peer": func(s string) []string { return append(base, "--peer", "peer:"+s+"=192.0.2.11") },
		"upstream":       func(s string) []string { return append(base, "--upstream", "fe80::1%"+s) },
		"node outside":   func(s string) []string { return append(outside, "--node", s+"=192.0.2.13") },
		"pool outside":   func(s string) []string { return append(outside, "--node", "m3:"+s+"=192.0.2.13") },
		"balancer":       func(s string) []string { return append(pair, "--balancer", s+"=192.0.2.252/24") },
		"its interface":  func(s string) []string { return append(pair, "--balancer", "b=192.0.2.252/24", "--interface", s) },
		"its file":       func(s string) []string { return append(outside, "--file", s) },
		"its host":       func(s string) []string { return append(outside, "--host", s) },
		"its network":    func(s string) []string { return append(outside, "--allow", s) },
		"its VIP":        func(s string) []string { return append(outside, "--api-vip", "fe80::1%"+s) },
		"vr-ids":         func(s string) []string { return []string{"vr-ids", "--", s} },
		"command":        func(s string) []string { return []string{s} },
	}
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"install-config.yaml": goodInstallConfig})
	exits(t, command.OK, append(pair, "--balancer", "b=192.0.2.252/24")...)
	for where, line := range commands {
		for name, text := range hostile {
			code, stdout, stderr := run("", line(text)...)
			if unprintable.MatchString(stderr) || unprintable.MatchString(stdout) {
				t.Errorf("%s: %s does not print: %.300q %.300q", where, name, stderr, stdout)
			}
			if code == command.OK && !inertWord.MatchString(text) && strings.Contains(stdout, text) {
				t.Errorf("%s: %s reaches the output", where, name)
			}
			if code == command.Failed && !strings.Contains(stderr, "[unreadable]\n") {
				t.Errorf("%s: %s: exit code %d, %.300q", where, name, code, stderr)
			}
		}
	}
}

// cluster.yaml is validated on the node, whatever its source.
func TestInjectionClusterConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"install-config.yaml": goodInstallConfig,
		"vipgen.yaml":       vipConfigHead + "spec: {ingress: [{name: default, nodeSelector: {a-key: a-value}}], dns: {records: [{name: r.example.com, addresses: [192.0.2.9]}]}}\n",
		"agent-config.yaml": replaced["agent-config.yaml"] + "hosts:\n- hostname: master-0\n  role: master\n  networkConfig: {interfaces: [{name: eno1, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}]}\n"})
	exits(t, command.OK, "render", "--format", "files", "--dir", "out")
	good := snapshot(t, "out")["out/files/master"+v1alpha1.ClusterConfigPath]
	for _, from := range []string{
		"name: demo\n", "domain: demo.example.com\n", "platform: baremetal\n", "instance: demo_API\n", "instance: demo_INGRESS\n", "password: demo_api\n",
		"name: api\n", "role: API\n", "controller: default\n", "name: master-0\n", "role: master\n", "name: r.example.com\n", "- apps.demo.example.com\n", "a-key: ", "a-key: a-value\n",
		"topology: HighlyAvailable\n", "loadBalancer: InCluster\n", "profile: fast\n", "mode: unicast\n", "- 192.0.2.2\n", "- 192.0.2.0/24\n",
	} {
		if strings.Count(good, from) == 0 {
			t.Errorf("no %q in\n%s", from, good)
			continue
		}
		for name, text := range hostile {
			key, _, _ := strings.Cut(from, " ")
			to := key + " " + yamlText(text) + "\n"
			if from == "a-key: " {
				to = yamlText(text) + ": "
			}
			c, err := v1alpha1.LoadClusterConfig("cluster.yaml", []byte(strings.Replace(good, from, to, 1)))
			if err == nil && !inertWord.MatchString(text) {
				t.Errorf("%s: %s is accepted: %+v", from, name, c.Metadata)
			}
			if err != nil && (unprintable.MatchString(err.Error()) || len(err.Error()) > 4000) {
				t.Errorf("%s: %s: the error is not fit for a log: %.300q", from, name, err)
			}
		}
	}
}
