package nodes

import (
	"log/slog"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestBootstrap walks through the possible contents of the ConfigMap.
func TestBootstrap(t *testing.T) {
	const absent = "(no ConfigMap)"
	at := func(a string) Bootstrap { return Bootstrap{Address: testkit.Addrs(a)[0]} }
	was := func(a string) Bootstrap { return Bootstrap{Address: testkit.Addrs(a)[0], Gone: true} }
	gone, unknown := Bootstrap{Gone: true}, Bootstrap{}
	type step struct {
		says string
		want Bootstrap
	}
	tests := []struct {
		name  string
		known Bootstrap
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
	}
	for _, tt := range tests {
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
