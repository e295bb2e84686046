package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Every field of vipgen.yaml is explained, by its path with and without indexes.
func TestExplainEveryField(t *testing.T) {
	var root *schemaNode
	testkit.Must(t, json.Unmarshal(v1alpha1.VIPConfigSchema, &root))
	count := 0
	var walk func(path string, n *schemaNode)
	walk = func(path string, n *schemaNode) {
		for name, p := range n.item().Properties {
			field := strings.TrimPrefix(path+"."+name, ".")
			out := must(t, "explain", field)
			if !strings.HasPrefix(out, field+": ") || p.Description == "" || !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(p.Description), " ")) {
				t.Errorf("%s is not explained:\n%s", field, out)
			}
			count++
			if p.Items != nil {
				walk(field+"[0]", p)
			} else {
				walk(field, p)
			}
		}
	}
	walk("", root)
	if count < 50 {
		t.Errorf("%d fields", count)
	}
}

func TestExplainField(t *testing.T) {
	for args, want := range map[string]string{
		"spec.vrrp.profile":                       "\nValues: fast, virtual, classic, custom\n",
		"spec.loadBalancer":                       "\nFields:\n  type  text  \"InCluster\" (the default)",
		"spec.vrrp.profile -o json":               `"enum": [`,
		"spec.ingress[3].healthPort":              "spec.ingress[3].healthPort: integer\n",
		"spec.openshiftVersion":                   "4.22",
		"apiVersion":                              "vipgen.io/v1alpha1",
		"spec.additionalAPIVIPs[0].names -o json": `"type": "array"`,
	} {
		testkit.Contains(testkit.In(t, args), must(t, append([]string{"explain"}, strings.Fields(args)...)...), want)
	}
	for field, want := range map[string]string{
		"spec.vrp":       `no field "spec.vrp" in vipgen.yaml: spec has additionalAPIVIPs, announce, apiServer, apiVIPs,`,
		"spec.network.x": "spec.network is text and has no fields",
	} {
		exits(t, command.Input, "explain", field).reports(want).silently()
	}
}

func TestCompleteField(t *testing.T) {
	for text, want := range map[string]string{"spec.vrrp.": "spec.vrrp.profile\n", "spec.ingress[0].": "spec.ingress[0].vips\n", "sp": "yaml\n", "spec": "spec.\n"} {
		testkit.Contains(testkit.In(t, text), must(t, "__complete", "explain", text), want)
	}
}
