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
	for name, want := range map[string]struct {
		says string // in the output of vipgen validate
		role string // the pool of one of the MachineConfigs
	}{
		"baremetal":             {"fast (VRRPv3, 40ms, unicast) from the first packet", "worker"},
		"vsphere-interoperable": {"starts as classic (VRRPv2, 1s, unicast), then migrates to virtual", "worker"},
		"none":                  {"198.51.100.5, virtual router ID 77", "worker"},
		"dual-stack":            {"192.0.2.5, 2001:db8:0:1::5", "infra"},
	} {
		for command, part := range map[string]string{"validate": want.says, "render": "machineconfiguration.openshift.io/role: " + want.role + "\n"} {
			code, out, errOut := vipgen(command, name)
			testkit.Equal(testkit.In(t, command, name, errOut), 0, code+len(errOut))
			testkit.Contains(testkit.In(t, command, name), out, part)
		}
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
