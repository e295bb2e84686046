package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "write vipconfig.schema.json from the types")

// draft is the version of JSON Schema. Draft-07 is the one that every release
// of the yaml-language-server understands; later drafts only recent ones do.
// Draft-07 ignores what is next to a $ref, descriptions too, so the schema
// has none.
const draft = "http://json-schema.org/draft-07/schema#"

func TestSchemaMatchesTheTypes(t *testing.T) {
	testkit.Kept(t, "vipconfig.schema.json", generate(t), *update)
}

// generate generates the schema: structure and descriptions from the types and their comments,
// valid values from rules.
func generate(t *testing.T) []byte {
	r := &jsonschema.Reflector{DoNotReference: true, Mapper: scalars}
	testkit.Must(t, r.AddGoComments("github.com/vipgen/vipgen/api/v1alpha1", "./", jsonschema.WithFullComment()))
	s := r.Reflect(&v1alpha1.VIPConfig{})
	s.Version, s.ID, s.Title = draft, "", v1alpha1.KindVIPConfig
	s.Required = []string{"apiVersion", "kind"}
	for _, rule := range rules() {
		at := field(s, rule.path)
		if at == nil {
			t.Fatalf("no field %s", rule.path)
		}
		rule.apply(at)
	}
	plain(s)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	testkit.Must(t, enc.Encode(s))
	// The library escapes these whatever the encoder's settings.
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(b.String()))
}

// scalars returns the schema of types that are text in the file.
func scalars(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[netip.Addr]():
		return &jsonschema.Schema{Type: "string", AnyOf: []*jsonschema.Schema{{Format: "ipv4"}, {Format: "ipv6"}}}
	case reflect.TypeFor[netip.Prefix]():
		return &jsonschema.Schema{Type: "string", Pattern: `^[0-9a-fA-F:.]+/[0-9]+$`}
	case reflect.TypeFor[v1alpha1.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(us|ms|s|m|h))+$`}
	}
	values := reflect.Zero(t).MethodByName("Values")
	if t.Kind() != reflect.String || !values.IsValid() {
		return nil
	}
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values.Call(nil)[0].Seq2() {
		s.Enum = append(s.Enum, v.String())
	}
	return s
}

// field finds a field by its path; "[]" is the elements of a list.
func field(s *jsonschema.Schema, path string) *jsonschema.Schema {
	for name := range strings.SplitSeq(path, ".") {
		if s == nil || path == "" {
			break
		}
		field, list := strings.CutSuffix(name, "[]")
		if s, _ = s.Properties.Get(field); list && s != nil {
			s = s.Items
		}
	}
	return s
}

// plain unwraps comments, and removes those of elements: they are about Go types.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Description = strings.Join(strings.Fields(s.Description), " ")
	if plain(s.Items); s.Items != nil {
		s.Items.Description = ""
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			plain(p.Value)
		}
	}
}

// rule restricts the values of a field beyond its type.
type rule struct {
	path  string
	apply func(*jsonschema.Schema)
}

const (
	label = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	name  = label + `(\.` + label + `)+`
	image = `^[a-zA-Z0-9][-a-zA-Z0-9._:/]*(@[a-z0-9]+:[0-9a-fA-F]{32,})?$`
)

func rules() []rule {
	list := []rule{
		{"apiVersion", constant(v1alpha1.APIVersion)},
		{"kind", constant(v1alpha1.KindVIPConfig)},
		{"spec.openshiftVersion", enum(ignition.SupportedOpenShift()...)},
		{"spec.vrrp", customNeedsInterval},
		// 0 and "" stand for the default of every field that has one.
		{"spec.vrrp.version", func(s *jsonschema.Schema) { s.Enum = []any{2, 3} }},
		{"spec.vrrp.advertInterval", func(s *jsonschema.Schema) { s.Examples = []any{"50ms", "1s"} }},
		{"spec.dns.upstreams", atMost(15)},
		{"spec.dns.records[].name", pattern(`^(\*\.)?` + name + `$`)},
		{"spec.dns.records[].addresses", atLeast(1)},
		{"spec.ingress[].name", func(s *jsonschema.Schema) {
			longest := uint64(47) // see maxIngressName
			s.Pattern, s.MaxLength = `^`+label+`$`, &longest
		}},
		{"spec.ingress[].controller", func(s *jsonschema.Schema) {
			longest := uint64(47) // see maxIngressName
			s.Pattern, s.MaxLength = `^(`+label+`)?$`, &longest
		}},
		{"spec.additionalAPIVIPs[].name", func(s *jsonschema.Schema) {
			longest := uint64(59) // see maxAPIName
			s.Pattern, s.MaxLength = `^`+label+`$`, &longest
		}},
		{"spec.additionalAPIVIPs[].names[]", pattern(`^` + name + `$`)},
		{"spec.additionalAPIVIPs[].vips", atLeast(1)},
		{"spec.appsDomain", pattern(`^(` + name + `)?$`)},
		{"spec.ingress[].domains[]", pattern(`^` + name + `$`)},
		{"spec.pools[].name", pattern(`^` + label + `$`)},
		{"spec.network", pattern(`^[A-Za-z0-9_.-]{0,63}$`)},
		{"spec.vrrp.reservedRouterIDs[]", between(1, 255)},
		{"spec.bgp.localASN", between(0, 1<<32-1)},
		{"spec.bgp.communities[]", pattern(`^[0-9]{1,5}:[0-9]{1,5}$`)},
		{"spec.bgp.peers[].asn", between(1, 1<<32-1)},
		{"spec.bgp.peers[].localASN", between(0, 1<<32-1)},
		{"spec.bgp.peers[].passwordFile", pattern(`^(/etc/vipgen/bgp/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,62})?$`)},
		{"spec.bgp.peers[].multihop", between(0, 255)},
		{"spec.bgp.peers[].bfd.multiplier", between(0, 255)},
	}
	for _, path := range []string{"spec.apiVIPs", "spec.ingressVIPs", "spec.ingress[].vips", "spec.additionalAPIVIPs[].vips"} {
		list = append(list, rule{path, atMost(2)})
	}
	for _, path := range []string{"spec.vrrp.virtualRouterIDs.api", "spec.vrrp.virtualRouterIDs.ingress", "spec.vrrp.virtualRouterIDs.dns", "spec.ingress[].virtualRouterID", "spec.additionalAPIVIPs[].virtualRouterID"} {
		list = append(list, rule{path, between(0, 255)})
	}
	list = append(list, rule{"spec.ingress[].healthPort", between(0, 65535)})
	for _, field := range fields(reflect.TypeFor[v1alpha1.Ports]()) {
		list = append(list, rule{"spec.ports." + field, between(0, 65535)})
	}
	for _, field := range fields(reflect.TypeFor[v1alpha1.Images]()) {
		if field != "release" {
			list = append(list, rule{"spec.images." + field, pattern(image)})
		}
	}
	list = append(list, rule{"spec.images.release", pattern(`^[0-9]+\.[0-9]+(\.[0-9][0-9A-Za-z.+-]*)?$`)})
	return append(list, defaults()...)
}

// defaults returns the values of Default.
func defaults() []rule {
	var c v1alpha1.VIPConfig
	c.Default()
	list := []rule{
		{"spec.loadBalancer.type", byDefault(string(c.Spec.LoadBalancer.Type))},
		{"spec.announce", byDefault(string(v1alpha1.AnnounceVRRP))},
		{"spec.vrrp.mode", byDefault(string(c.Spec.VRRP.Mode))},
	}
	ports := reflect.ValueOf(c.Spec.Ports)
	for i, field := range fields(ports.Type()) {
		list = append(list, rule{"spec.ports." + field, byDefault(ports.Field(i).Int())})
	}
	return list
}

func constant(v string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Const = v }
}

func enum(values ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}
}

func pattern(p string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Pattern = p }
}

func atMost(n uint64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MaxItems = &n }
}

func atLeast(n uint64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MinItems = &n }
}

func between(low, high int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		l, _ := json.Marshal(low)
		h, _ := json.Marshal(high)
		s.Minimum, s.Maximum = json.Number(l), json.Number(h)
	}
}

func byDefault(v any) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Default = v }
}

// customNeedsInterval makes the interval required with the custom profile.
func customNeedsInterval(s *jsonschema.Schema) {
	is := jsonschema.NewProperties()
	is.Set("profile", &jsonschema.Schema{Const: string(v1alpha1.ProfileCustom)})
	s.If = &jsonschema.Schema{Properties: is, Required: []string{"profile"}}
	s.Then = &jsonschema.Schema{Required: []string{"advertInterval"}}
}

// fields returns the names of a struct's fields in the file.
func fields(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
