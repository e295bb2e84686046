package agentcli

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
	"github.com/vipgen/vipgen/internal/testkit/outputs"
)

// run executes a command line inside the test's own process.
func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, &o, &e)
	checkOutput(t, args, o.String())
	return code, o.String(), e.String()
}

// rootWith makes a file system with the given cluster.yaml.
func rootWith(t *testing.T, cluster string) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, v1alpha1.ClusterConfigPath)
	testkit.WriteFile(t, path, []byte(cluster))
	return root
}

func TestExitCodes(t *testing.T) {
	good := testkit.ReadFile(t, "testdata/cluster.yaml")
	t.Setenv("NODE_NAME", "")
	bad := rootWith(t, strings.Replace(string(good), "replicas: 3", "replicas: 0", 1))
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // part of the error
	}{
		{"help", []string{"--help"}, command.OK, ""},
		{"version", []string{"version"}, command.OK, ""},
		{"unknown command", []string{"frobnicate"}, command.Input, `unknown command "frobnicate"`},
		{"unknown log format", []string{"version", "--log-format", "xml"}, command.Input, "expected text or json"},
		{"log as JSON", []string{"node-ip", "show", "--root", t.TempDir(), "--log-format", "json"}, command.Failed, `"level":"ERROR","msg":"ended","error":"`},
		{"unknown level", []string{"version", "--log-level", "loud"}, command.Input, "unknown name"},
		{"install without a destination", []string{"install"}, command.Input, "missing: DEST"},
		{"install onto a directory", []string{"install", t.TempDir()}, command.Failed, "is a directory"},
		{"install nowhere", []string{"install", filepath.Join(t.TempDir(), "a", "b")}, command.Failed, "no such file"},
		{"keepalived without a role", []string{"keepalived"}, command.Input, "--role"},
		{"keepalived without a name", []string{"keepalived", "--role", "master"}, command.Input, "NODE_NAME"},
		{"render without facts", []string{"render", "hosts"}, command.Input, "--facts or --role"},
		{"render of nothing known", []string{"render", "x"}, command.Input, `"x": expected keepalived.conf, haproxy.cfg, Corefile or hosts`},
		{"fabric-check without a peer", []string{"fabric-check", "--address", "192.0.2.250"}, command.Input, "missing: --peer ADDRESS --address UNUSED"},
		{"fabric-check of a name", []string{"fabric-check", "--peer", "192.0.2.2", "--address", "vip"}, command.Input, `--address "vip": expected an IP address`},
		{"fabric-check of a VIP", []string{"fabric-check", "--peer", "192.0.2.2", "--address", "192.0.2.5", "--root", rootWith(t, string(good))}, command.Input, "192.0.2.5 is a VIP of this cluster"},
		{"fabric-check elsewhere", []string{"fabric-check", "--peer", "198.18.77.2", "--address", "198.18.77.250", "--root", t.TempDir()}, command.Input, "198.18.77.250 is in no subnet of this node"},
		{"fabric-check at no port", []string{"fabric-check", "--peer", "192.0.2.2", "--address", "192.0.2.250", "--port", "0"}, command.Input, "--port 0: expected 1 to 65535"},
		{"unknown command with a suggestion", []string{"probe", "keepalive"}, command.Input, "did you mean keepalived?"},
		{"probe without the job", []string{"probe", "keepalived", "--root", t.TempDir()}, command.Finding, "does not run"},
		{"no cluster.yaml", []string{"node-ip", "show", "--root", t.TempDir()}, command.Failed, "cluster.yaml: no such file"},
		{"cluster.yaml that is none", []string{"node-ip", "set", "--root", rootWith(t, "a: [")}, command.Input, "yaml"},
		{"cluster.yaml with a mistake", []string{"node-ip", "set", "--root", bad}, command.Input, "spec.controlPlane.replicas"},
		{"cluster.yaml elsewhere", []string{"resolv-conf", "--root", bad, "--cluster-config", "/elsewhere"}, command.Failed, "elsewhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := run(t, tt.args...)
			if code != tt.code || !strings.Contains(errOut, tt.want) {
				t.Errorf("exit code %d with %q, want %d with %q", code, errOut, tt.code, tt.want)
			}
			testkit.Equal(testkit.In(t, code, out), out != "", code == command.OK)
		})
	}
}

func TestEveryCommandHasHelpAndAnExample(t *testing.T) {
	commandtest.Program{Root: (&app{}).command, Run: func(args []string, _ io.Reader, out, errOut io.Writer) int {
		return Run(t.Context(), args, out, errOut)
	}}.CheckHelp(t)
}

// TestEveryCommandIsDocumented covers commands and flags.
func TestEveryCommandIsDocumented(t *testing.T) {
	page := string(testkit.ReadFile(t, "README.md"))
	commandtest.Walk((&app{}).command(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !regexp.MustCompile("`--"+f.Name+"[ `]").MatchString(page) {
				t.Errorf("%s: flag --%s is not documented", c.CommandPath(), f.Name)
			}
		})
		if c.Name() != "help" && !c.HasSubCommands() && !strings.Contains(page, "`"+c.CommandPath()+"`") {
			t.Errorf("%s is not documented", c.CommandPath())
		}
	})
}

// TestDependencies: the agent is small because it contains nothing of the offline half.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../agent/...", "../vipgen-agent").Output()
	testkit.Must(t, err)
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/vipgen/vipgen/agent/nodeip") {
		t.Fatalf("not the packages of the agent: %v", packages)
	}
	for _, p := range packages {
		inside, ours := strings.CutPrefix(p, "github.com/vipgen/vipgen/")
		top, _, _ := strings.Cut(inside, "/")
		allowed := []string{"cmd/agentcli", "cmd/command", "cmd/vipgen-agent",
			"internal/arpnd", "internal/events", "internal/fileio", "internal/lazy", "internal/lists", "internal/liveness", "internal/liveness/early", "internal/loopback", "internal/netdump", "internal/rawio", "internal/ticker", "internal/unnumbered", "internal/vrrp", "internal/vrrp/listener"}
		if ours && !slices.Contains([]string{"agent", "api", "templates"}, top) && !slices.Contains(allowed, inside) {
			t.Errorf("depends on %s", p)
		}
	}
}

var update = flag.Bool("update", false, "write the schemas of what -o json prints")

// schemas is the folder that 'vipgen schema --of' reads.
const schemas = "../cli/schemas/"

// TestSchemas: the schemas match the types.
func TestSchemas(t *testing.T) {
	for _, o := range kinds {
		outputs.Verify(t, "cmd/agentcli", schemas+o.Name+".schema.json", o.Kind, o.Type, *update)
	}
}

// checkOutput fails the test if the JSON output of a command violates its schema.
func checkOutput(t *testing.T, args []string, printed string) {
	t.Helper()
	if !strings.HasPrefix(printed, "{") || !slices.Contains(args, "json") {
		return
	}
	err := outputs.Check([]byte(printed), func(kind string) []byte {
		name := "version"
		if i := slices.IndexFunc(kinds, func(o command.Output) bool { return o.Kind == kind }); i >= 0 {
			name = kinds[i].Name
		}
		text, err := os.ReadFile(schemas + name + ".schema.json")
		testkit.Check(t, err)
		return text
	})
	testkit.Check(testkit.In(t, args, printed), err)
}
