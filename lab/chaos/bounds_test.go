package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
)

// The bounds follow from the settings: those of the demo cluster, with one and a half times its
// interval.
func TestBounds(t *testing.T) {
	c, err := lab.Demo()
	testkit.Must(t, err)
	p, err := Prepare(&Config{Cluster: c, Duration: time.Minute, Limits: Limits{AtOnce: 1}})
	testkit.Must(t, err)
	interval := time.Duration(c.Config.Spec.VRRP.Target.AdvertIntervalMS) * time.Millisecond
	testkit.Equal(testkit.In(t, interval), interval*3/2, p.Bounds.Advert)
	for name, d := range map[string]time.Duration{
		"Refused": p.Bounds.Refused, "Hung": p.Bounds.Hung, "Backends": p.Bounds.Backends, "BackendUp": p.Bounds.BackendUp,
		"Apply": p.Bounds.Apply, "Return": p.Bounds.Return,
	} {
		if d <= 0 || d > time.Minute {
			t.Errorf("%s is %v", name, d)
		}
	}
	if p.Bounds.Hung <= p.Bounds.Refused || p.Bounds.silent() <= 3*p.Bounds.Advert {
		t.Errorf("%+v", p.Bounds)
	}
	if agent := daemon.DefaultTiming; applyPace != agent.MinInterval || applyDelay != agent.MaxDelay {
		t.Errorf("the agent applies every %v, after %v at most", agent.MinInterval, agent.MaxDelay)
	}
	var b Bounds
	if err := b.haproxy("backend x\n"); err == nil {
		t.Error("a template that has no health checks is taken")
	}
}

// With routers of several ingress controllers, other rules would hold.
func TestSeveralIngressControllers(t *testing.T) {
	c, err := lab.Demo()
	testkit.Must(t, err)
	c.Config.Spec.Groups = append(c.Config.Spec.Groups, v1alpha1.Group{Name: "ingress-blue", Role: v1alpha1.GroupIngress, Controller: "blue"})
	if _, err := Prepare(&Config{Cluster: c, Duration: time.Minute, Limits: Limits{AtOnce: 1}}); err == nil || !strings.Contains(err.Error(), "2 ingress controllers") {
		t.Error(err)
	}
}
