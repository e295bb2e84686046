package health

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

var (
	apiGroup     = v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}
	moreAPI      = v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI}
	dnsGroup     = v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS}
	ingressGroup = v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}
)

// priority returns the priority of a node with these facts, less 300 for a veto.
func priority(t *testing.T, g v1alpha1.Group, role string, facts ...state.Fact) int {
	t.Helper()
	b := NewBoard()
	for _, f := range facts {
		b.Set(f)
	}
	sum, terms := vrrp.PriorityTerms(&g, role)
	for _, term := range terms {
		on := term.On(b.Health(&g))
		switch {
		case on && term.Points == 0:
			sum -= 300
		case on:
			sum += term.Points
		}
	}
	return sum
}

func so(names ...string) (out []state.Fact) {
	for _, name := range names {
		out = append(out, state.Fact{Name: name, OK: true})
	}
	return out
}

func TestPriorities(t *testing.T) {
	notHere, notOwn := state.Fact{Name: RouterHere("ingress")}, state.Fact{Name: RouterOwn("ingress")}
	ready, answers, here := RouterReady("ingress"), routerAnswers("ingress"), RouterHere("ingress")
	tests := map[string]struct {
		group v1alpha1.Group
		role  string
		facts []state.Fact
		want  int
	}{
		"nothing known":                             {apiGroup, v1alpha1.RoleMaster, nil, 40},
		"all is well":                               {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, FactRedirect, factMachineConfig), 68},
		"the bootstrap":                             {apiGroup, v1alpha1.RoleBootstrap, so(FactAPI), 70},
		"an API server without HAProxy":             {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactRedirect), 45},
		"HardCase06: the redirect is missing":       {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, factMachineConfig), 48},
		"HardCase07: the local API server restarts": {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy, FactRedirect, factMachineConfig), 68},
		"none ready, for a while":                   {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy, FactRedirect, factReady, factMachineConfig), 68},
		"none ready, for long":                      {apiGroup, v1alpha1.RoleMaster, append(so(FactHAProxy, FactRedirect, factMachineConfig), state.Fact{Name: factReady}), 43},
		"HAProxy crashed a moment ago":              {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactRestarting, factMachineConfig), 68},
		"it crashed, and is back":                   {apiGroup, v1alpha1.RoleMaster, so(FactRedirect, FactRestarting, factMachineConfig), 68},
		"it crashed, and nothing serves":            {apiGroup, v1alpha1.RoleMaster, so(FactRestarting, factMachineConfig), 43},
		"HAProxy without the redirect":              {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy), 40},
		"machine config server alone":               {apiGroup, v1alpha1.RoleMaster, so(factMachineConfig), 43},
		"more API VIPs, all is well":                {moreAPI, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, Redirect(&moreAPI), factMachineConfig), 68},
		"more API VIPs, a redirect of others":       {moreAPI, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, FactRedirect), 45},
		"a redirect of more API VIPs alone":         {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, Redirect(&moreAPI)), 45},
		"DNS answers":                               {dnsGroup, v1alpha1.RoleMaster, so(FactDNS), 60},
		"DNS does not answer":                       {dnsGroup, v1alpha1.RoleMaster, nil, 40},
		"no router":                                 {ingressGroup, v1alpha1.RoleWorker, nil, -280},
		"router ready":                              {ingressGroup, v1alpha1.RoleWorker, so(ready, answers, here), 80},
		"HardCase21: router shuts down":             {ingressGroup, v1alpha1.RoleWorker, so(answers, here), 70},
		"nobody said whose router, ready":           {ingressGroup, v1alpha1.RoleWorker, so(ready, answers), 30},
		"nobody said whose router, answers":         {ingressGroup, v1alpha1.RoleWorker, so(answers), 20},
		"router is dead, the pod still there":       {ingressGroup, v1alpha1.RoleWorker, so(here), -230},
		"router of nobody knows whom":               {ingressGroup, v1alpha1.RoleWorker, append(so(ready, answers), notHere), 30},
		"HardCase21: router of another controller":  {ingressGroup, v1alpha1.RoleWorker, append(so(ready, answers), notHere, notOwn), -270},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, tt.want, priority(t, tt.group, tt.role, tt.facts...))
		})
	}
}

func TestChecks(t *testing.T) {
	spec := &v1alpha1.ClusterConfigSpec{Ports: v1alpha1.DefaultPorts, Groups: []v1alpha1.Group{apiGroup, dnsGroup, ingressGroup, moreAPI}}
	router := []string{"ingress-router-answers", "ingress-router-ready"}
	controlPlane := []string{"api", "api-ready", "dns", "haproxy", "machine-config"}
	compact := *spec
	compact.Groups = slices.Clone(spec.Groups)
	compact.Groups[2].NodeSelector = map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleMaster): ""}
	tests := map[string]struct {
		spec *v1alpha1.ClusterConfigSpec
		role string
		want []string
	}{
		"bootstrap":      {&compact, v1alpha1.RoleBootstrap, []string{"api", "dns", "ironic"}},
		"master":         {&compact, v1alpha1.RoleMaster, append(slices.Clone(controlPlane), router...)},
		"arbiter":        {&compact, v1alpha1.RoleArbiter, controlPlane},
		"worker":         {spec, v1alpha1.RoleWorker, router},
		"worker, others": {&compact, v1alpha1.RoleWorker, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Checks(tt.spec, tt.role, nil) {
				got = append(got, c.Name) // each once, although two groups use it
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			testkit.Equal(t, tt.want, got)
		})
	}
}
