package agentcli

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/outputs"
)

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
