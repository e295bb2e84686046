package v1alpha1_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/source"
)

// TestEveryEnumIsChecked: a type with constants has its values declared with it, from which the
// schema takes them, and validation refuses others.
func TestEveryEnumIsChecked(t *testing.T) {
	everyEnumIsChecked(t, &v1alpha1.VIPConfig{})
	everyEnumIsChecked(t, &v1alpha1.ClusterConfig{Spec: v1alpha1.ClusterConfigSpec{LoadBalancer: v1alpha1.LoadBalancerInCluster}})
}

func everyEnumIsChecked(t *testing.T, c interface{ Validate() problem.List }) {
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch own := v.Type().PkgPath() == reflect.TypeOf(c).Elem().PkgPath(); {
		case v.Kind() == reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			walk(v.Index(0), path+"[0]")
		case own && v.Kind() == reflect.Struct:
			for i, name := range fields(v.Type()) {
				walk(v.Field(i), strings.TrimPrefix(path+"."+name, "."))
			}
		case own && v.Kind() == reflect.String:
			if !v.MethodByName("Values").IsValid() {
				t.Errorf("%s: its type %v has no method Values", path, v.Type())
			}
			before := v.String()
			v.SetString("nonsense")
			if !slices.ContainsFunc(c.Validate(), func(p problem.Problem) bool { return p.Field == path && strings.Contains(p.Found, "nonsense") }) {
				t.Errorf("%T %s: validation takes a value that there is not", c, path)
			}
			v.SetString(before)
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
}

// compiled compiles the schema with an independent implementation that checks formats.
func compiled(t *testing.T) *validator.Schema {
	t.Helper()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(v1alpha1.VIPConfigSchema))
	testkit.Must(t, err)
	c := validator.NewCompiler()
	c.AssertFormat()
	testkit.Must(t, c.AddResource("vipconfig.json", doc))
	s, err := c.Compile("vipconfig.json")
	testkit.Must(t, err)
	return s
}

// instance converts YAML for the validator.
func instance(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	testkit.Must(t, err)
	v, err := validator.UnmarshalJSON(bytes.NewReader(data))
	testkit.Must(t, err)
	return v
}

// problems returns vipgen's own problems.
func problems(text string) problem.List {
	doc, list := source.Parse("vipgen.yaml", []byte(text))
	if doc == nil {
		return list
	}
	var c v1alpha1.VIPConfig
	list = append(list, doc.DecodeStrict(&c)...)
	return append(list, c.Validate()...)
}

const head = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\n"

func TestSchemaAccepts(t *testing.T) {
	tests := map[string]string{
		"nothing": head,
		"VRRPv2":  head + "spec: {vrrp: {profile: custom, version: 2, advertInterval: 2s}}",
	}
	for _, pattern := range []string{"../../examples/*/vipgen.yaml", "../../golden/*/*/vipgen.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal("no file like", pattern, err)
		}
		for _, name := range files {
			tests[name] = string(testkit.ReadFile(t, name))
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	testkit.Must(t, err)
	for _, page := range pages {
		for i, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(testkit.ReadFile(t, page)), -1) {
			if strings.Contains(block[1], "kind: VIPConfig") {
				tests[fmt.Sprintf("%s, block %d", page, i+1)] = block[1]
			}
		}
	}
	schema := compiled(t)
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			testkit.Check(t, schema.Validate(instance(t, text)))
			if list := problems(text); list.Err() != nil {
				t.Errorf("vipgen refuses it:\n%s", list)
			}
		})
	}
}

// TestSchemaRefuses lists errors that an editor must mark; vipgen refuses all of them, too.
func TestSchemaRefuses(t *testing.T) {
	tests := map[string]string{
		"no kind":             "apiVersion: vipgen.io/v1alpha1",
		"other version":       "apiVersion: vipgen.io/v1\nkind: VIPConfig",
		"unknown field":       head + "spec: {apiVips: [192.0.2.5]}",
		"text for a list":     head + "spec: {apiVIPs: 192.0.2.5}",
		"no address":          head + "spec: {apiVIPs: [192.0.2.500]}",
		"host name":           head + "spec: {dns: {upstreams: [dns.example.com]}}",
		"three VIPs":          head + `spec: {apiVIPs: [192.0.2.5, "2001:db8::5", 192.0.2.6]}`,
		"load balancer":       head + "spec: {loadBalancer: {type: UserManaged}}",
		"profile":             head + "spec: {vrrp: {profile: slow}}",
		"mode":                head + "spec: {vrrp: {mode: broadcast}}",
		"custom, no interval": head + "spec: {vrrp: {profile: custom}}",
		"interval in words":   head + "spec: {vrrp: {profile: custom, advertInterval: fast}}",
		"router ID":           head + "spec: {vrrp: {virtualRouterIDs: {api: 256}}}",
		"port":                head + "spec: {ports: {haproxy: 65536}}",
		"image with space":    head + `spec: {images: {agent: "quay.io/a b"}}`,
		"record, no address":  head + "spec: {dns: {records: [{name: a.example.com, addresses: []}]}}",
		"record, upper case":  head + "spec: {dns: {records: [{name: A.example.com, addresses: [192.0.2.1]}]}}",
		"too many upstreams":  head + "spec: {dns: {upstreams: [" + strings.Repeat("192.0.2.1,", 16) + "]}}",
		"ingress, no name":    head + "spec: {ingress: [{vips: [192.0.2.7], domains: [a.example.com]}]}",
		"long ingress name":   head + "spec: {ingress: [{name: " + strings.Repeat("a", 48) + ", vips: [192.0.2.7], domains: [a.example.com]}]}",
		"pool name":           head + "spec: {pools: [{name: Infra}]}",
		"text for a switch":   head + `spec: {manifests: {nodeDisruptionPolicy: "yes"}}`,
	}
	schema := compiled(t)
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if schema.Validate(instance(t, text)) == nil {
				t.Error("the schema accepts it")
			}
			if problems(text).Err() == nil {
				t.Error("vipgen accepts it")
			}
		})
	}
}
