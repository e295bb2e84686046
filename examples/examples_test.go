// Package examples_test runs the examples, so that they keep working.
package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/internal/testkit"
)

// asVipgen makes the test program behave as vipgen, for scripts to run.
const asVipgen = "VIPGEN_EXAMPLES_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asVipgen) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// vipgen runs a command line.
func vipgen(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = cli.Run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestExamplesRender(t *testing.T) {
	tests := []struct {
		name string
		// pools that have MachineConfigs.
		pools []string
		// says is contained in the output of `vipgen validate`.
		says []string
	}{
		{"baremetal", []string{"master", "worker"}, []string{"demo.example.com", "192.0.2.5", "fast (VRRPv3, 40ms, unicast) from the first packet"}},
		{"vsphere-interoperable", []string{"master", "worker"}, []string{"starts as classic (VRRPv2, 1s, unicast), then migrates to virtual"}},
		{"none", []string{"master", "worker"}, []string{"198.51.100.5, virtual router ID 77"}},
		{"dual-stack", []string{"infra", "master", "worker"}, []string{"192.0.2.5, 2001:db8:0:1::5", "ingress-internal 192.0.2.7"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := vipgen("validate", tt.name)
			if code != 0 || errOut != "" {
				t.Fatalf("validate: exit code %d\n%s", code, errOut)
			}
			testkit.Contains(t, out, tt.says...)
			code, out, errOut = vipgen("render", filepath.Join(tt.name, "install-config.yaml"))
			if code != 0 || errOut != "" {
				t.Fatalf("render: exit code %d\n%s", code, errOut)
			}
			if n := strings.Count(out, "kind: MachineConfig\n"); n != len(tt.pools) {
				t.Errorf("%d MachineConfigs, want %d", n, len(tt.pools))
			}
			for _, pool := range tt.pools {
				testkit.Contains(testkit.In(t, pool), out, "machineconfiguration.openshift.io/role: "+pool+"\n")
			}
		})
	}
}

// TestExamplesAreFake: addresses are from the ranges for documentation (RFC 5737, RFC 3849) or
// internal to clusters, domains from RFC 2606, and nothing resembles a secret.
func TestExamplesAreFake(t *testing.T) {
	address := regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	fine := regexp.MustCompile(`^(192\.0\.2\.|198\.51\.100\.|10\.128\.0\.0$|172\.30\.0\.0$|0\.0\.0\.0$|127\.0\.0\.1$)`)
	domain := regexp.MustCompile(`[a-z0-9-]+\.(com|org|net|io)\b`)
	secret := regexp.MustCompile(`(?m)^\s*(?:pullSecret|sshKey|password|user): (.*)$`)
	files, err := filepath.Glob("*/*.yaml")
	exported, _ := filepath.Glob("export/*/*")
	if files = append(files, exported...); err != nil || len(files) < 5 || len(exported) == 0 {
		t.Fatal("no examples", err)
	}
	for _, name := range files {
		data := testkit.ReadFile(t, name)
		for _, a := range address.FindAllString(string(data), -1) {
			if !fine.MatchString(a) {
				t.Errorf("%s: %s is not an address for documentation", name, a)
			}
		}
		for _, d := range domain.FindAllString(string(data), -1) {
			if d != "example.com" && d != "vipgen.io" && d != "kubernetes.io" && d != "openshift.io" {
				t.Errorf("%s: %s is not a domain for documentation", name, d)
			}
		}
		for _, s := range secret.FindAllStringSubmatch(string(data), -1) {
			if s[1] != "REPLACE-ME" && s[1] != `'{"auths": {}}'` {
				t.Errorf("%s: %s resembles a secret", name, s[1])
			}
		}
	}
}
