package cli

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// functionInput returns a ResourceList with items and a spec.
func functionInput(items, spec string) string {
	return "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:" + items + "\nfunctionConfig:\n  apiVersion: vipgen.io/v1alpha1\n  kind: VIPConfig\n  metadata: {name: x, annotations: {a: b}, labels: {c: d}}\n  spec:\n" + spec
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

// items splits the items of a ResourceList, with their formatting.
func items(t *testing.T, out string) (texts []string, results []any) {
	t.Helper()
	var list struct {
		APIVersion, Kind string
		Items            []yaml.Node
		Results          []any
	}
	if err := yaml.Unmarshal([]byte(out), &list); err != nil || list.Kind != "ResourceList" {
		t.Fatalf("%v\n%s", err, out)
	}
	_, body, _ := strings.Cut(out, "items:\n")
	for part := range strings.SplitSeq("\n"+body, "\n- ") {
		if part != "" {
			texts = append(texts, strings.ReplaceAll(part, "\n  ", "\n")+"\n")
		}
	}
	return texts, list.Results
}

// function runs the function for kustomize, which must succeed without a report.
func function(t *testing.T, in string) string {
	t.Helper()
	code, out, report := run(in, "fn")
	if code != command.OK || report != "" {
		t.Fatalf("exit code %d\n%s", code, report)
	}
	return out
}

func TestFunction(t *testing.T) {
	good(t)
	stream := strings.Split(strings.TrimPrefix(must(t, "render"), "---\n"), "---\n")
	inline := "    installConfig:\n" + indented(goodInstallConfig, "      ")
	configMap := "\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: input} # mine\n  data:\n    ic.yaml: |\n" + indented(goodInstallConfig, "      ")
	for name, in := range map[string]string{
		"inline":    functionInput(" []", inline),
		"text":      functionInput("", "    installConfig: |\n"+indented(goodInstallConfig, "      ")),
		"file":      functionInput(" []", "    installConfigFile: install-config.yaml\n"),
		"reference": functionInput(configMap, "    installConfigRef: {name: input, key: ic.yaml}\n"),
	} {
		out := function(t, in)
		got, _ := items(t, out)
		if name == "reference" {
			testkit.Contains(t, got[0], "kind: ConfigMap", "# mine")
			got = got[1:]
		}
		testkit.Equal(testkit.In(t, name), lists.Map(stream, strings.TrimSpace), lists.Map(got, strings.TrimSpace))
		// Its own output is replaced, not duplicated.
		again := strings.Replace(in, "items:", "items:\n"+strings.SplitAfterN(out, "items:\n", 2)[1], 1)
		if name == "file" {
			again = strings.Replace(again, " []\nfunctionConfig", "\nfunctionConfig", 1)
			second, _ := items(t, function(t, strings.Replace(again, "\n\n", "\n", 1)))
			testkit.Equal(t, len(stream), len(second))
		}
	}
}

func TestFunctionProblems(t *testing.T) {
	good(t)
	for name, tt := range map[string]struct{ in, says string }{
		"no config":         {"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n", "no functionConfig"},
		"another kind":      {"kind: List\n", `found "" "List"`},
		"nothing":           {"", "a ResourceList"},
		"an empty object":   {"{}\n", "found neither apiVersion nor kind, expected config.kubernetes.io/v1 ResourceList"},
		"not YAML":          {"a: [", "[syntax]"},
		"no install-config": {functionInput(" []", "    openshiftVersion: \"4.18\"\n"), "functionConfig: error: spec.installConfig: found nothing"},
		"a field":           {functionInput(" []", "    vrpp: {}\n    installConfigFile: install-config.yaml\n"), `functionConfig: error: spec.vrpp: found "vrpp"`},
		"install-config":    {functionInput(" []", "    installConfig: {apiVersion: v1}\n"), "functionConfig: error: spec.installConfig.metadata.name: found nothing"},
		"no file":           {functionInput(" []", "    installConfigFile: none.yaml\n"), "none.yaml: error"},
		"no ConfigMap":      {functionInput(" []", "    installConfigRef: {name: x, key: y}\n"), "the name of a ConfigMap among the items"},
	} {
		code, out, errOut := run(tt.in, "fn")
		want := command.Input
		if name == "no file" {
			want = command.Failed
		}
		if code != want || !strings.Contains(errOut, tt.says) {
			t.Errorf("%s: exit code %d, want %q\n%s", name, code, tt.says, errOut)
		}
		if out != "" {
			if _, results := items(t, out); len(results) == 0 {
				t.Errorf("%s: no results in\n%s", name, out)
			}
		}
	}
}

func FuzzFunction(f *testing.F) {
	f.Add(functionInput(" []", "    installConfig: {apiVersion: v1}\n"))
	f.Add(functionInput("\n- a: b", "    installConfigRef: {name: x}\n"))
	f.Fuzz(func(t *testing.T, in string) {
		if strings.Contains(in, "File") {
			return // no files of this machine
		}
		if code, out, _ := run(in, "fn"); code == command.Failed || code == command.OK && out == "" {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
}
