package nodes

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	selection "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// Each control-plane Node is in exactly one list, whichever release labelled it, and no other
// Node is in any.
func TestControlPlaneLists(t *testing.T) {
	var selectors []selection.Selector
	for _, text := range controlPlane {
		s, err := selection.Parse(text)
		testkit.Must(t, err)
		selectors = append(selectors, s)
	}
	all := []string{"control-plane", "master", "worker", "infra"}
	for bits := range 1 << len(all) {
		set, record := selection.Set{}, &record{Name: "n"}
		for i, name := range all {
			if bits&(1<<i) != 0 {
				set[v1alpha1.RoleLabel(name)] = ""
				record.Labels = append(record.Labels, label{Key: v1alpha1.RoleLabel(name)})
			}
		}
		in, want := 0, 0
		for _, s := range selectors {
			if s.Matches(set) {
				in++
			}
		}
		if role(record.Labels) == v1alpha1.RoleMaster {
			want = 1
		}
		testkit.Equal(testkit.In(t, slices.Sorted(maps.Keys(set))), want, in)
	}
}

// The known state stays in force until both lists are complete, so that no node is missing in
// between. The loss of the API is published at once.
func TestListsBegin(t *testing.T) {
	urgent := false
	l := newLists(true, nil, func(now bool) { urgent = now })
	name := func(i int) string { return fmt.Sprintf("master-%d", i) }
	var known []*record
	for i := range 3 {
		known = append(known, &record{Name: name(i)})
	}
	l.restore(known)
	check := func(when string, stale, synced bool, want ...string) {
		t.Helper()
		var got []string
		items, old, ok := l.get()
		for _, r := range items {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) || old != stale || ok != synced {
			t.Errorf("%s: %v, stale %t, synced %t; want %v, %t, %t", when, got, old, ok, want, stale, synced)
		}
	}
	list := func(i int, names ...string) {
		t.Helper()
		var objects []any
		for _, name := range names {
			objects = append(objects, &nodeObject{meta: meta{Name: name}})
		}
		testkit.Must(t, l[i].Replace(objects, ""))
		l[i].setReached(true)
	}
	check("at first", true, false, name(0), name(1), name(2))
	list(0, name(1))
	check("with one of the lists", true, false, name(0), name(1), name(2))
	list(1, name(0))
	check("with both", false, true, name(0), name(1))
	// A Node that gets the other label is briefly in both lists.
	testkit.Must(t, l[0].Add(&nodeObject{meta: meta{Name: name(0)}}))
	check("labelled", false, true, name(0), name(1))
	testkit.Must(t, l[1].Delete(&nodeObject{meta: meta{Name: name(0)}}))
	check("in the other list", false, true, name(0), name(1))
	l[1].setReached(false)
	check("without the API", true, true, name(0), name(1))
	testkit.Equal(t, true, urgent)
	l[1].setReached(true)
	testkit.Equal(t, false, urgent)
}

// TestBootstrap walks through the possible contents of the ConfigMap.
func TestBootstrap(t *testing.T) {
	const absent = "(no ConfigMap)"
	at := func(a string) nodelist.Bootstrap { return nodelist.Bootstrap{Address: testkit.Addrs(a)[0]} }
	was := func(a string) nodelist.Bootstrap { return nodelist.Bootstrap{Address: testkit.Addrs(a)[0], Gone: true} }
	gone, unknown := nodelist.Bootstrap{Gone: true}, nodelist.Bootstrap{}
	type step struct {
		says string
		want nodelist.Bootstrap
	}
	for _, tt := range []struct {
		name  string
		known nodelist.Bootstrap
		steps []step
	}{
		{"an installation", unknown, []step{{absent, unknown}, {"192.0.2.9", at("192.0.2.9")}, {"", was("192.0.2.9")}}},
		{"IPv6", unknown, []step{{"2001:db8::9", at("2001:db8::9")}}},
		{"long after it", unknown, []step{{"", gone}}},
		{"the ConfigMap goes", unknown, []step{{"192.0.2.9", at("192.0.2.9")}, {absent, at("192.0.2.9")}, {"", was("192.0.2.9")}, {absent, was("192.0.2.9")}}},
		{"known from before, no ConfigMap", gone, []step{{absent, gone}}},
		{"known from before, gone meanwhile", at("192.0.2.9"), []step{{"", was("192.0.2.9")}}},
		{"another bootstrap", was("192.0.2.9"), []step{{"192.0.2.8", at("192.0.2.8")}}},
		{"no address", unknown, []step{{"somewhere", unknown}, {"127.0.0.1", unknown}, {"fe80::1%eth0", unknown}}},
		{"no address any more", at("192.0.2.9"), []step{{"somewhere", at("192.0.2.9")}}},
		{"there again, wherever that is", gone, []step{{"somewhere", unknown}, {"", gone}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := &logBuffer{}
			changes := 0
			b := newBootstrapWatch(nil, tt.known, func() { changes++ }, slog.New(slog.NewTextHandler(log, nil)))
			for _, step := range tt.steps {
				var list []any
				if step.says != absent {
					c := &configMapObject{meta: meta{Name: endpointsName}}
					c.Annotations.EtcdBootstrap = step.says
					list = append(list, c)
				}
				before, told := b.current(), changes
				replace := func() {
					testkit.Must(t, b.store.Replace(list, "1"))
				}
				replace()
				if got := b.current(); got != step.want || (changes > told) != (got != before) {
					t.Fatalf("%q: %+v, want %+v; %d changes", step.says, got, step.want, changes-told)
				}
				said := log.String()
				told = changes
				replace()
				if log.String() != said || changes != told {
					t.Errorf("%q, read again, is news:\n%s", step.says, log)
				}
			}
		})
	}
}

func TestReadList(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		names string
		fails bool
	}{
		"nodes": {`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
			node("a", "", "", "") + `,` + node("b", "", "", "") + `]}`, "a b", false},
		"items first":    {`{"items":[],"metadata":{"resourceVersion":"9"},"kind":"NodeList"}`, "", false},
		"null":           {`{"metadata":{"resourceVersion":"9"},"items":null}`, "", false},
		"cut short":      {`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{}}`, "", true},
		"cut at the end": {`{"metadata":{"resourceVersion":"9"},"items":[]`, "", true},
		"not a list":     {`{"metadata":{"resourceVersion":"9"},"items":{}}`, "", true},
		"not an object":  {`[]`, "", true},
		"empty":          {``, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readList[nodeObject](strings.NewReader(c.in))
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			if err != nil {
				return
			}
			l := got.(*list[nodeObject])
			var names []string
			for _, n := range l.Items {
				names = append(names, n.Name)
			}
			if s := strings.Join(names, " "); s != c.names || l.ResourceVersion != "9" {
				t.Errorf("got %q at %q, want %q at 9", s, l.ResourceVersion, c.names)
			}
		})
	}
}

// The controllers with routers on a node, and whether only others have any.
func TestRouters(t *testing.T) {
	pod := func(controller, phase string, ready bool) *podObject {
		p := &podObject{}
		p.Labels = newLabels(map[string]string{routerLabel: controller})
		p.Status.Phase = phase
		if ready {
			p.Status.Conditions = []podCondition{{"Ready", "True"}}
		}
		return p
	}
	for name, tt := range map[string]struct {
		pods           []*podObject
		ready, present []string
		foreign        bool // to the controller "default"
	}{
		"none":                   {nil, nil, nil, false},
		"its own":                {[]*podObject{pod("default", "Running", true)}, []string{"default"}, []string{"default"}, false},
		"its own starts":         {[]*podObject{pod("default", "Pending", false)}, nil, []string{"default"}, false},
		"another's":              {[]*podObject{pod("blue", "Running", true)}, []string{"blue"}, []string{"blue"}, true},
		"another's starts":       {[]*podObject{pod("blue", "Pending", false)}, nil, []string{"blue"}, true},
		"another's was evicted":  {[]*podObject{pod("blue", "Failed", false)}, nil, nil, false},
		"both":                   {[]*podObject{pod("blue", "Running", true), pod("default", "Running", false)}, []string{"blue"}, []string{"blue", "default"}, false},
		"its own was evicted":    {[]*podObject{pod("blue", "Running", true), pod("default", "Failed", false)}, []string{"blue"}, []string{"blue"}, true},
		"two of another's":       {[]*podObject{pod("blue", "Running", true), pod("blue", "Pending", false)}, []string{"blue"}, []string{"blue"}, true},
		"another's has finished": {[]*podObject{pod("blue", "Succeeded", false)}, nil, nil, false},
	} {
		var kept []router
		for _, p := range tt.pods {
			kept = append(kept, newRouter(p))
		}
		got := routersOf(kept, false)
		if !slices.Equal(got.Ready, tt.ready) || !slices.Equal(got.Present, tt.present) || got.Foreign("default") != tt.foreign {
			t.Errorf("%s: %+v, foreign %t", name, got, got.Foreign("default"))
		}
	}
}

// TestRightsNamed checks that the messages about missing rights name what the
// renderer emits.
func TestRightsNamed(t *testing.T) {
	for file, said := range map[string]rights{
		manifest.ClusterRole: nodesRights, manifest.ClusterRoleBinding: nodesRights,
		manifest.Role: endpointsRights, manifest.RoleBinding: endpointsRights,
	} {
		testkit.Contains(testkit.In(t, file), said.remedy, "manifests/"+file+".yaml")
		data, err := manifest.Render(file, manifest.Params{})
		testkit.Must(t, err)
		var object struct {
			Metadata struct{ Name, Namespace string }
		}
		testkit.Must(t, yaml.Unmarshal(data, &object))
		if object.Metadata.Name != rightsName || !strings.Contains(said.remedy, object.Metadata.Namespace) {
			t.Errorf("%s is %+v, not as in %q", file, object.Metadata, said.remedy)
		}
	}
}
