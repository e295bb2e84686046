package keepalived

import (
	"testing"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// routerList says of every controller what the API said.
type routerList struct {
	facts.Nodes
	here, known bool
}

func (l routerList) Router(string) (here, known bool) { return l.here, l.known }

// The API's last word on whose router runs here stands while the API is away: the
// router of another controller must not look like the group's own then (hard case
// 21).
func TestHardCase21APIAway(t *testing.T) {
	s := &v1alpha1.ClusterConfigSpec{Groups: []v1alpha1.Group{{Name: "ingress", Role: v1alpha1.GroupIngress, Controller: "default"}}}
	b := health.NewBoard()
	b.Set(health.Fact{Name: health.RouterReady("ingress"), OK: true})
	steps := []struct {
		what        string
		here, known bool
		want        bool
	}{
		{"nobody said yet", false, false, false},
		{"another controller's", false, true, false},
		{"away after that", true, false, false},
		{"its own", true, true, true},
		{"away after that", false, false, true},
		{"another controller's again", false, true, false},
	}
	for _, step := range steps {
		routers(b, s, routerList{here: step.here, known: step.known})
		if f, _ := b.Get(health.RouterHere("ingress")); f.OK != step.want {
			t.Errorf("%s: %+v, want %t", step.what, f, step.want)
		}
	}
}
