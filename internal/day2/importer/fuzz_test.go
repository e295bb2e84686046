package importer_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/render"
)

// fuzzFile imports any bytes as one file of a case: nothing panics, problems have a position,
// and imported input loads, which Read verifies itself.
func fuzzFile(f *testing.F, name, file string) {
	var rest []render.File
	for _, s := range sourceFiles(f, name) {
		if s.Name == name+"/"+file {
			f.Add(s.Data)
		} else {
			rest = append(rest, s)
		}
	}
	for _, seed := range []string{"", "{", "}", "a {\n", "{{", "{{ \"}}\" }}", "vrrp_instance x_API {\n virtual_ipaddress {\n 1.2.3.4/99\n }\n}", "a\n{\nb \"c\\\" d\"\n}", "${A}${B", "kind: List\nitems: [{kind: List, items: [{kind: Pod}]}]\n", "kind: Node\napiVersion: v1\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, list := importer.Read(append(rest[:len(rest):len(rest)], render.File{Name: name + "/" + file, Data: data}), importer.Given{})
		for _, p := range list {
			if p.Line < 0 || p.Code == "" || strings.ContainsFunc(p.String(), unicode.IsControl) {
				t.Errorf("the problem %q", p)
			}
		}
		switch {
		case r == nil && list.Err() == nil:
			t.Error("no result and no error")
		case r != nil && list.Err() != nil:
			t.Error("a result and an error")
		case r != nil:
			for _, l := range r.Lost {
				if strings.ContainsFunc(l.What+l.Instead, unicode.IsControl) || len(l.Places) == 0 {
					t.Errorf("the loss %+v", l)
				}
			}
			for _, c := range r.Carried {
				if strings.ContainsFunc(c.What+c.Value, unicode.IsControl) {
					t.Errorf("the fact %+v", c)
				}
			}
		}
	})
}

func FuzzKeepalived(f *testing.F) {
	fuzzFile(f, "baremetal", "master-0/etc/keepalived/keepalived.conf")
}
func FuzzTemplate(f *testing.F) {
	fuzzFile(f, "multicast", "00-master/etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl")
}
func FuzzManifest(f *testing.F) {
	fuzzFile(f, "baremetal", "master-0/etc/kubernetes/manifests/keepalived.yaml")
}
func FuzzObjects(f *testing.F)  { fuzzFile(f, "multicast", "objects.yaml") }
func FuzzState(f *testing.F)    { fuzzFile(f, "dual-stack", "nodes.yaml") }
func FuzzModeFile(f *testing.F) { fuzzFile(f, "dual-stack", "master-0/etc/keepalived/monitor.conf") }
