package cli

import (
	"encoding/json"
	"regexp"
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

// Every code of reports is explained, as in docs/problems.md.
func TestExplainCode(t *testing.T) {
	codes := regexp.MustCompile(`(?m)^\t\w+ +Code = "(.+)"$`).FindAllSubmatch(testkit.ReadFile(t, "../../api/problem/codes.go"), -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	t.Chdir(t.TempDir())
	for _, code := range codes {
		out := must(t, "explain", string(code[1]))
		if !strings.HasPrefix(out, string(code[1])+": ") || !strings.Contains(out, "\nWhat to do: ") || strings.Contains(out, "](") {
			t.Errorf("%s: got\n%s", code[1], out)
		}
	}
	var got problemCode
	if err := json.Unmarshal([]byte(must(t, "explain", "vip-taken", "-o", "json")), &got); err != nil || got.Code != "vip-taken" || !strings.HasPrefix(got.Do, "choose a free address") {
		t.Errorf("%v, %+v", err, got)
	}
	for args, want := range map[string]int{"explain no-such-code": command.Failed, "explain vip-taken -o html": command.Input, "explain vip-taken --svg x.svg": command.Input} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}
