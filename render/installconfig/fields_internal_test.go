package installconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/assets"
)

// unlisted reports whether a field is read although no installer since 4.12 has it: a DNS VIP,
// and VIPs on platforms without them, which are reported. Fencing of an arbiter is unused.
func unlisted(at, name string) bool {
	return at == "arbiter" && name == "fencing" || name == "dnsVIP" || name == "dns_vip" || at == "platform.ovirt" && name == "dnsRecordsType" || at == "platform.none" || at == "platform.external"
}

// TestFieldTable: all fields that are read are in the table, each mapping of it is read, and
// its releases are known.
func TestFieldTable(t *testing.T) {
	walked := map[string]bool{}
	var walk func(at string, typ reflect.Type)
	walk = func(at string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer:
			walk(at, typ.Elem())
			return
		case reflect.Slice:
			walk(at+"[]", typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		known, checked := knownFields[at]
		walked[at] = walked[at] || checked
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := f.Tag.Get("json")
			switch {
			case f.Anonymous:
				walk(at, f.Type)
			case name != "":
				if checked && !slices.Contains(known, name) && !unlisted(at, name) {
					t.Errorf("%q has no %q", at, name)
				}
				walk(strings.TrimPrefix(at+"."+name, "."), f.Type)
			}
		}
	}
	walk("", reflect.TypeFor[file]())
	for at, names := range fieldTable {
		if !walked[at] {
			t.Errorf("nothing reads %q", at)
		}
		list := strings.Fields(names)
		if at != "platform" && at != "" && !strings.HasPrefix(names, machinePool) && !slices.IsSorted(lower(list)) {
			t.Errorf("%q is not sorted", at)
		}
		for _, name := range list {
			if _, since, later := strings.Cut(name, "@"); later && !slices.ContainsFunc(assets.Releases, func(r assets.Release) bool { return r.Version == since }) {
				t.Errorf("%q: no release %s", name, since)
			}
		}
	}
}

func lower(list []string) (out []string) {
	for _, s := range list {
		name, _, _ := strings.Cut(s, "@")
		out = append(out, strings.ToLower(name))
	}
	return out
}
