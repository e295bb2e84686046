package cli

import (
	"embed"
	"fmt"
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

// kinds lists the JSON objects that commands print, without MachineConfigs and manifests, whose
// schemas Kubernetes has.
var kinds = command.Outputs{
	command.OutputOf[adopt.Plan]("adopt", "Adoption"),
	command.OutputOf[adopt.Check]("adopt-check", "AdoptionCheck"),
	command.OutputOf[routerList]("bgp-peer-config", "RouterList"),
	command.OutputOf[endpoint.Report]("check-endpoint", "EndpointCheck"),
	command.OutputOf[diffReport]("diff", "Diff"),
	command.OutputOf[diagnosis]("doctor", "Diagnosis"),
	command.OutputOf[explain.Report]("explain", "Explanation"),
	command.OutputOf[problemCode]("explain-code", "ProblemCode"),
	command.OutputOf[fieldExplanation]("explain-field", "Field"),
	command.OutputOf[externallb.Plan]("external-lb", "ExternalLoadBalancer"),
	command.OutputOf[v1alpha1.Images]("images", "Images"),
	command.OutputOf[imported]("import", "Import"),
	command.OutputOf[inspection]("inspect", "Inspection"),
	command.OutputOf[migrationPlan]("migrate", "Migration"),
	command.OutputOf[openstack.Plan]("openstack-hints", "OpenStackHints"),
	command.OutputOf[portList]("ports", "Ports"),
	command.OutputOf[removal]("remove", "Removal"),
	command.OutputOf[status.Cluster]("status", "ClusterStatus"),
	command.OutputOf[validation]("validate", "Validation"),
	command.OutputOf[validationList]("validate-fleet", "ValidationList"),
	command.OutputOf[proven]("verify", "Verification"),
	command.OutputOf[command.Build]("version", command.KindVersion),
	command.OutputOf[idsResult]("vr-ids", "RouterIDs"),
	command.OutputOf[derivedIDs]("vr-ids-names", "DerivedRouterIDs"),
}

//go:embed schemas
var schemas embed.FS

// schemaNames returns the names that 'vipgen schema --of' takes, with those of vipgen-agent.
func schemaNames() (names []string) {
	files, _ := schemas.ReadDir("schemas") // embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), schemaSuffix))
	}
	return names
}

const schemaSuffix = ".schema.json"

func outputSchema(name string) ([]byte, error) {
	if !slices.Contains(schemaNames(), name) {
		return nil, fmt.Errorf("--of %s: expected %s", name, command.Or(schemaNames()))
	}
	return schemas.ReadFile("schemas/" + name + schemaSuffix)
}

func (a *app) printJSON(v any) error { return kinds.Print(a.Out, v) }
