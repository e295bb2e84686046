package cli

import (
	"embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/companion/endpoint"
	"github.com/vipgen/vipgen/internal/companion/externallb"
	"github.com/vipgen/vipgen/internal/companion/openstack"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/status"
	"github.com/vipgen/vipgen/internal/proof/explain"
)

// output is a kind of JSON object that a command prints.
type output struct {
	// Name is that of 'vipgen schema --of'.
	Name string
	Kind string
	Type reflect.Type
}

// kinds lists the JSON objects that commands print. MachineConfigs and manifests are not among
// them: Kubernetes has schemas of these.
var kinds = []output{
	{"adopt", "Adoption", reflect.TypeFor[adopt.Plan]()},
	{"adopt-check", "AdoptionCheck", reflect.TypeFor[adopt.Check]()},
	{"check-endpoint", "EndpointCheck", reflect.TypeFor[endpoint.Report]()},
	{"diff", "Diff", reflect.TypeFor[diffReport]()},
	{"doctor", "Diagnosis", reflect.TypeFor[diagnosis]()},
	{"explain", "Explanation", reflect.TypeFor[explain.Report]()},
	{"explain-code", "ProblemCode", reflect.TypeFor[problemCode]()},
	{"explain-field", "Field", reflect.TypeFor[fieldExplanation]()},
	{"external-lb", "ExternalLoadBalancer", reflect.TypeFor[externallb.Plan]()},
	{"images", "Images", reflect.TypeFor[v1alpha1.Images]()},
	{"import", "Import", reflect.TypeFor[imported]()},
	{"inspect", "Inspection", reflect.TypeFor[inspection]()},
	{"migrate", "Migration", reflect.TypeFor[migrationPlan]()},
	{"openstack-hints", "OpenStackHints", reflect.TypeFor[openstack.Plan]()},
	{"ports", "Ports", reflect.TypeFor[portList]()},
	{"remove", "Removal", reflect.TypeFor[removal]()},
	{"status", "ClusterStatus", reflect.TypeFor[status.Cluster]()},
	{"validate", "Validation", reflect.TypeFor[validation]()},
	{"validate-fleet", "ValidationList", reflect.TypeFor[validationList]()},
	{"verify", "Verification", reflect.TypeFor[proven]()},
	{"version", command.KindVersion, reflect.TypeFor[command.Build]()},
	{"vr-ids", "RouterIDs", reflect.TypeFor[idsResult]()},
	{"vr-ids-names", "DerivedRouterIDs", reflect.TypeFor[derivedIDs]()},
}

//go:embed schemas
var schemas embed.FS

// schemaNames returns the names that 'vipgen schema --of' takes, with those of vipgen-agent.
func schemaNames() (names []string) {
	files, _ := schemas.ReadDir("schemas") // it is embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), schemaSuffix))
	}
	return names
}

const schemaSuffix = ".schema.json"

// outputSchema returns the JSON Schema of what a command prints.
func outputSchema(name string) ([]byte, error) {
	if !slices.Contains(schemaNames(), name) {
		return nil, fmt.Errorf("--of %s: expected %s", name, command.Or(schemaNames()))
	}
	return schemas.ReadFile("schemas/" + name + schemaSuffix)
}

// kindOf returns the kind of an object that a command prints.
func kindOf(v any) (string, error) {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	i := slices.IndexFunc(kinds, func(o output) bool { return o.Type == t })
	if i < 0 {
		return "", fmt.Errorf("%v is no kind of output", t)
	}
	return kinds[i].Kind, nil
}

// printJSON prints an object of one of the kinds to standard output.
func (a *app) printJSON(v any) error {
	kind, err := kindOf(v)
	if err != nil {
		return err
	}
	return command.Object(a.Out, kind, v)
}
