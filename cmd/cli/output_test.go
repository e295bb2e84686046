package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
	"github.com/vipgen/vipgen/internal/testkit/outputs"
)

// TestSchemas: the schemas match the types.
func TestSchemas(t *testing.T) {
	for _, o := range kinds {
		outputs.Verify(t, "cmd/cli", "schemas/"+o.Name+schemaSuffix, o.Kind, o.Type, *update)
		if !slices.Contains(schemaNames(), o.Name) {
			t.Errorf("%s is not embedded", o.Name)
		}
	}
	exits(t, command.Input, "schema", "--of", "nonsense").reports("validate")
}

// schemaOf is the schema of a kind of output.
func schemaOf(kind string) []byte {
	for _, name := range schemaNames() {
		text, _ := outputSchema(name)
		if strings.Contains(string(text), `"const": "`+kind+`"`) {
			return text
		}
	}
	return nil
}

// checkOutput panics if the output of a command violates its schema: every test of this package
// runs its commands with it.
func checkOutput(args []string, printed string) {
	if !strings.HasPrefix(printed, "{") || !asksJSON(args) {
		return
	}
	if err := outputs.Check([]byte(printed), schemaOf); err != nil {
		panic(strings.Join(args, " ") + ": " + err.Error() + "\n" + printed)
	}
}

// asksJSON reports whether a command line has -o json; those of the lab run elsewhere.
func asksJSON(args []string) bool {
	i := slices.Index(args, "-o")
	return i >= 0 && i+1 < len(args) && args[i+1] == "json" && args[0] != "lab"
}

// TestJSONEverywhere: each command with output for people has it as JSON, too.
func TestJSONEverywhere(t *testing.T) {
	// These print files, Kubernetes objects or another format, write files, or start a program.
	files := []string{"render", "init", "schema", "fn", "preview", "external-lb render", "metallb", "migrate write", "help"}
	commandtest.Walk((&app{}).root(), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "vipgen ")
		if c.HasSubCommands() || slices.Contains(files, name) || name == "lab" || strings.HasPrefix(name, "completion") {
			return
		}
		o := c.Flags().Lookup("output")
		if o == nil || !strings.Contains(o.Usage, "json") {
			t.Errorf("vipgen %s has no -o json", name)
		}
	})
}

// Commands that write report it in one line unless -q is given, and so does a check without
// differences.
func TestWrittenFilesAreReported(t *testing.T) {
	good(t)
	for _, step := range []struct{ args, want string }{
		{"render --dir rendered --format machineconfig", "wrote 6 files to rendered (6 changed)\n"},
		{"render --dir rendered --format machineconfig --check", "rendered: all 6 files are as rendered\n"},
		{"render --dir rendered --format machineconfig", "wrote 6 files to rendered (0 changed)\n"},
		{"render --dir rendered --format machineconfig -q", ""},
		{"render --dir rendered --format machineconfig -q --check", ""},
		{"init --openshift-version 4.18", "wrote vipgen.yaml\n"},
		{"render --dir rendered --format machineconfig", "wrote 7 files to rendered (3 changed)\n"},
	} {
		testkit.Equal(testkit.In(t, step.args), step.want, exits(t, command.OK, strings.Fields(step.args)...).silently().report)
	}
}

// The root of a file system is refused as an output directory, however it is spelled.
func TestRefusesRoots(t *testing.T) {
	good(t)
	for _, dir := range []string{"/", "//", "/.", "/proc/..", strings.Repeat("../", 40), "/proc/self/root"} {
		exits(t, command.Input, "render", "--dir", dir).silently().begins(dir + ": error: found the root of a file system, expected a directory")
	}
}

// dependencies returns the packages that vipgen is built from for a system.
func dependencies(t *testing.T, system string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "../vipgen", "../kubectl-vipgen")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	testkit.Must(t, err)
	return strings.Fields(string(out))
}

const agentPackages = "github.com/vipgen/vipgen/agent/"

// notOffline lists packages that the offline program must not import: the lab and what tests
// share with it, networks, and clients of an API server.
var notOffline = []string{
	"github.com/vipgen/vipgen/lab", "github.com/vipgen/vipgen/internal/testbed", "github.com/vipgen/vipgen/internal/testkit",
	"github.com/gopacket/gopacket", "github.com/mdlayher/netlink", "github.com/vishvananda/netlink", "k8s.io/client-go",
}

// isAgents reports whether a package belongs to the agent. The offline program may import only
// the published state of jobs, which status reads.
func isAgents(p string) bool {
	return strings.HasPrefix(p, agentPackages) && p != agentPackages+"state"
}

// The offline program holds no code of nodes, and nothing of the lab.
func TestDependencies(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		packages := dependencies(t, system)
		if !slices.Contains(packages, "github.com/vipgen/vipgen/render") {
			t.Fatalf("not the packages of vipgen: %v", packages)
		}
		for _, p := range packages {
			if isAgents(p) || slices.ContainsFunc(notOffline, func(other string) bool { return p == other || strings.HasPrefix(p, other+"/") }) {
				t.Errorf("%s: depends on %s", system, p)
			}
		}
	}
}
