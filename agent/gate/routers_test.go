package gate

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// routerList is the API's list of routers on this node.
type routerList struct {
	facts.Nodes
	routers nodelist.Routers
	known   bool
}

func (l routerList) Routers() (nodelist.Routers, bool) { return l.routers, l.known }

// The last list of routers on this node stays in force while the API is unreachable: the router
// of another controller must not count as the group's own then (hard case 21).
func TestHardCase21APIUnreachable(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	s := &v1alpha1.ClusterConfigSpec{Groups: []v1alpha1.Group{{Name: "ingress", Role: v1alpha1.GroupIngress, Controller: "default"}}}
	b := health.NewBoard()
	b.Set(state.Fact{Name: health.RouterReady("ingress"), OK: true})
	of := func(ready, present string) nodelist.Routers {
		return nodelist.Routers{Ready: strings.Fields(ready), Present: strings.Fields(present)}
	}
	for _, step := range []struct {
		what    string
		routers nodelist.Routers
		known   bool
		// here: a ready router of its own; foreign: routers of others alone, which bars it from
		// holding the VIP.
		here, foreign bool
	}{
		{"nobody said yet", nodelist.Routers{}, false, false, false},
		{"none", of("", ""), true, false, false},
		{"another controller's", of("blue", "blue"), true, false, true},
		{"away after that", of("default", "default"), false, false, true},
		{"another's, which only starts", of("", "blue"), true, false, true},
		{"its own, which only starts", of("", "default"), true, false, false},
		{"its own", of("default", "default"), true, true, false},
		{"away after that", of("blue", "blue"), false, true, false},
		{"both, on other ports", of("blue default", "blue default"), true, true, false},
		{"another's again, its own ends", of("blue", "blue default"), true, false, false},
		{"another's again", of("blue", "blue"), true, false, true},
	} {
		SetRouters(b, s, &v1alpha1.Node{Role: v1alpha1.RoleWorker}, routerList{routers: step.routers, known: step.known})
		here, _ := b.Get(health.RouterHere("ingress"))
		own, known := b.Get(health.RouterOwn("ingress"))
		if here.OK != step.here || (known && !own.OK) != step.foreign {
			t.Errorf("%s: %+v, %+v", step.what, here, own)
		}
	}
	elsewhere := health.NewBoard()
	SetRouters(elsewhere, s, &v1alpha1.Node{Role: v1alpha1.RoleArbiter}, routerList{routers: of("default", "default"), known: true})
	testkit.Empty(t, elsewhere.Facts())
}
