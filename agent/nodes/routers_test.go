package nodes

import (
	"slices"
	"testing"
)

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
	tests := map[string]struct {
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
	}
	for name, tt := range tests {
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
