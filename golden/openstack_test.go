package golden

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// hinted holds the arguments of vipgen openstack-hints, of clusters under cases. The output is
// in openstack/NAME: hints.sh, hints.tf, hints.json and the warnings.
var hinted = []struct{ name, cluster, flags string }{
	{"dns-vip", "openstack-dns-vip", "--port master=cnf10-master-0 --port master=cnf10-master-1 --port master=cnf10-master-2 --port worker=cnf10-worker-0 " +
		"--vip-port api=cnf10-api-port --vip-port ingress=c3c14e9d-750f-46fb-af9c-e9fd375719b2 --floating-ip ingress=203.0.113.11"},
	{"dual-stack", "openstack-dual-stack", "--network machines --port master=stack-master-0 --port worker=87295f6b-75ed-4420-9548-a37d4ae137fc --floating-ip ingress=203.0.113.11"},
	{"pairs-only", "openstack-default-vips", "--port master=it's^$(not)^${run}"},
	{"floating-only", "openstack-dns-vip", "--vip-port ingress=cnf10-ingress-port --floating-ip ingress=203.0.113.11"},
}

// hintFlags splits flags at spaces; ^ stands for a space in a name.
func hintFlags(flags string) []string {
	out := strings.Fields(flags)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "^", " ")
	}
	return out
}

func hints(t *testing.T, cluster, flags string) files {
	t.Helper()
	out := files{}
	for form, name := range map[string]string{"script": "hints.sh", "terraform": "hints.tf", "json": "hints.json"} {
		args := append([]string{"openstack-hints", filepath.Join("cases", cluster, "install-config.yaml"), "-o", form}, hintFlags(flags)...)
		text, report := vipgen(t, args...)
		out[name] = text
		out["report.txt"] = bytes.ReplaceAll(report, []byte(filepath.Join("cases", cluster)+"/"), nil)
	}
	return out
}

// TestOpenStack compares the output with the expected one, and checks it with shellcheck and
// HCL's own parser.
func TestOpenStack(t *testing.T) {
	shellcheck := testkit.Program(t, "shellcheck")
	for _, tt := range hinted {
		t.Run(tt.name, func(t *testing.T) {
			got := hints(t, tt.cluster, tt.flags)
			dir := filepath.Join("openstack", tt.name)
			if *update {
				writeTree(t, dir, got)
			}
			testkit.Equal(t, asText(readTree(t, dir)), asText(got))
			check := exec.Command(shellcheck, "-")
			check.Stdin = bytes.NewReader(got["hints.sh"])
			testkit.Run(t, check)
			if _, diags := hclparse.NewParser().ParseHCL(got["hints.tf"], "hints.tf"); diags.HasErrors() {
				t.Errorf("HCL: %v", diags)
			}
		})
	}
}

// fakeOpenStack stands in for OpenStack's client: it records its arguments, one call per line,
// each argument in angle brackets, and answers for the ports that a test declares.
//
//go:embed testdata/openstack
var fakeOpenStack string

// stack runs scripts against the stand-in.
type stack struct {
	t     *testing.T
	dir   string
	pairs map[string]string
}

// run runs a script and returns the recorded calls, its output and its exit code.
func (s stack) run(script []byte, args ...string) (calls []string, out string, code int) {
	s.t.Helper()
	s.dir = s.t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(s.dir, name)
		testkit.Must(s.t, os.MkdirAll(filepath.Dir(name), 0o755))
		testkit.Must(s.t, process.WriteProgram(name, []byte(text)))
	}
	write("bin/openstack", fakeOpenStack)
	write("hints.sh", string(script))
	write("record", "")
	for port, text := range s.pairs {
		write("pairs/"+port, text)
	}
	cmd := exec.Command("bash", append([]string{filepath.Join(s.dir, "hints.sh")}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + filepath.Join(s.dir, "bin") + ":/usr/bin:/bin", "RECORD=" + filepath.Join(s.dir, "record"), "PAIRS=" + filepath.Join(s.dir, "pairs")}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	record := string(testkit.ReadFile(s.t, filepath.Join(s.dir, "record")))
	return strings.Split(strings.TrimSuffix(record, "\n"), "\n"), strings.ReplaceAll(string(text), s.dir, ""), cmd.ProcessState.ExitCode()
}

// TestOpenStackDryRun: without --apply nothing is called, and the printed commands are those
// that --apply runs to change something.
func TestOpenStackDryRun(t *testing.T) {
	for _, tt := range hinted {
		t.Run(tt.name, func(t *testing.T) {
			script := hints(t, tt.cluster, tt.flags)["hints.sh"]
			calls, shown, code := stack{t: t}.run(script)
			if code != 0 || len(calls) != 1 || calls[0] != "" || !strings.HasSuffix(shown, "\nnothing was done; to do it: /hints.sh --apply\n") {
				t.Errorf("exit code %d, calls %q, %s", code, calls, shown)
			}
			shown, _, _ = strings.Cut(shown, "nothing was done")
			applied, out, code := stack{t: t}.run(script, "--apply")
			if code != 0 || out != shown {
				t.Errorf("exit code %d, shown by --apply:\n%s\nbefore:\n%s", code, out, shown)
			}
			var changes []string
			for _, c := range applied {
				if !strings.HasPrefix(c, "<port><show>") {
					changes = append(changes, c)
				}
			}
			var want []string
			for line := range strings.Lines(shown) {
				// The printed commands can be pasted: bash splits them into the same arguments.
				out, err := exec.Command("bash", "-c", `openstack() { printf '<%s>' "$@"; }; `+line).Output()
				testkit.Must(t, err)
				want = append(want, string(out))
			}
			if diff := cmp.Diff(want, changes); diff != "" || len(want) == 0 {
				t.Errorf("shown and done differ:\n%s", diff)
			}
			for _, args := range [][]string{{"--aply"}, {"--apply", "x"}, {""}} {
				if calls, out, code := (stack{t: t}).run(script, args...); code != 2 || calls[0] != "" || !strings.Contains(out, "usage:") {
					t.Errorf("%q: exit code %d, calls %q, %s", args, code, calls, out)
				}
			}
		})
	}
}

// TestOpenStackApply: existing settings are left alone, in either format in which clients print
// pairs; all others are created, in the required order.
func TestOpenStackApply(t *testing.T) {
	script := hints(t, hinted[1].cluster, hinted[1].flags)["hints.sh"]
	const v4, v6 = "192.168.25.10", "fd2e:6f44:5dd8:c956:f816:3eff:fec3:5955"
	const worker = "87295f6b-75ed-4420-9548-a37d4ae137fc"
	calls, _, code := stack{t: t, pairs: map[string]string{
		"stack-api-port": "there",
		"stack-master-0": fmt.Sprintf(`{"allowed_address_pairs": [{"ip_address": %q, "mac_address": "fa:16:3e:25:f2:fe"}]}`, v6),
		worker:           `{"allowed_address_pairs": "ip_address='192.168.25.11', mac_address='fa:16:3e:25:f2:fe'\nip_address='192.168.25.110', mac_address=''"}`,
	}}.run(script, "--apply")
	want := []string{
		"<port><show><-f><value><-c><id><stack-api-port>",
		"<port><show><-f><value><-c><id><stack-ingress-port>",
		"<port><create><--network><machines><--fixed-ip><ip-address=192.168.25.11><--fixed-ip><ip-address=fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb><stack-ingress-port>",
		"<port><show><-f><json><-c><allowed_address_pairs><" + worker + ">",
		"<port><set><--allowed-address><ip-address=fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb><" + worker + ">",
		"<port><show><-f><json><-c><allowed_address_pairs><stack-master-0>",
		"<port><set><--allowed-address><ip-address=" + v4 + "><stack-master-0>",
		"<floating><ip><set><--port><stack-api-port><--fixed-ip-address>" + "<" + v4 + "><203.0.113.10>",
		"<floating><ip><set><--port><stack-ingress-port><--fixed-ip-address><192.168.25.11><203.0.113.11>",
	}
	if diff := cmp.Diff(want, calls); diff != "" || code != 0 {
		t.Errorf("exit code %d\n%s", code, diff)
	}
}
