package vrrp

import (
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

func TestPrefer(t *testing.T) {
	const master, arbiter = v1alpha1.RoleMaster, v1alpha1.RoleArbiter
	full := Health{HAProxy: true, Redirect: true, API: true, MachineConfig: true}
	for _, tt := range []struct {
		what, group, role string
		health            Health
		want              Preference
	}{
		{"all works", "api", master, full, Preferred},
		{"no machine config server", "api", master, Health{HAProxy: true, Redirect: true, API: true}, Second},
		{"which additional VIPs do not need", "api-mgmt", master, Health{HAProxy: true, Redirect: true}, Preferred},
		{"an arbiter balances", "api", arbiter, Health{HAProxy: true, Redirect: true}, Second},
		{"no redirect (hard case 6)", "api", master, Health{HAProxy: true, API: true, MachineConfig: true}, Third},
		{"HAProxy is dead", "api", master, Health{API: true, MachineConfig: true}, Third},
		{"HAProxy restarts", "api", master, Health{API: true, Restarting: true, MachineConfig: true}, Preferred},
		{"no API server is ready (hard case 45)", "api", master, Health{HAProxy: true, Redirect: true, Unready: true, MachineConfig: true}, Last},
		{"nothing", "api", master, Health{MachineConfig: true}, Withdrawn},
		{"the bootstrap", "api", v1alpha1.RoleBootstrap, Health{}, Preferred},
		{"CoreDNS", "dns", master, Health{DNS: true}, Preferred},
		{"no CoreDNS", "dns", master, full, Withdrawn},
		{"own router", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true, RouterHere: true}, Preferred},
		{"own router stops", "ingress", "worker", Health{RouterAnswers: true, RouterHere: true}, Second},
		{"a router, unknown whose", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true}, Third},
		{"it starts", "ingress", "worker", Health{RouterAnswers: true}, Last},
		{"another controller's (hard case 21)", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true, RouterForeign: true}, Withdrawn},
		{"dead, by the API's last answer its own", "ingress", "worker", Health{RouterHere: true}, Withdrawn},
	} {
		role := v1alpha1.GroupAPI
		switch tt.group {
		case "dns":
			role = v1alpha1.GroupDNS
		case "ingress":
			role = v1alpha1.GroupIngress
		}
		g := &v1alpha1.Group{Name: tt.group, Role: role}
		if got := Prefer(g, tt.role, tt.health); got != tt.want || PreferenceWords(g, tt.role, got) == "" {
			t.Errorf("%s: %d, want %d (%q)", tt.what, got, tt.want, PreferenceWords(g, tt.role, got))
		}
	}
}
