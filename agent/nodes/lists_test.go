package nodes

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	selection "k8s.io/apimachinery/pkg/labels"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
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
		if in != want {
			t.Errorf("%v: in %d lists, want %d", slices.Sorted(maps.Keys(set)), in, want)
		}
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
