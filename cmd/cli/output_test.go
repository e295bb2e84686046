package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/command/commandtest"
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
