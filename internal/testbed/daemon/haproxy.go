package daemon

import (
	"strings"
	"testing"
)

const haproxyCfg = "/etc/haproxy/haproxy.cfg"

// HAProxy fails the test unless HAProxy's own parser (haproxy -c) accepts cfg without an
// [ALERT] or a [WARNING].
//
// HAProxy 2.6 exits with 1 after an [ALERT] and with 0 after a [WARNING]. It binds no address
// and opens no socket; host names of servers are resolved, which fails here.
func HAProxy(t testing.TB, cfg []byte) { t.Helper(); Installed.CheckHAProxy(t, cfg) }

// CheckHAProxy is HAProxy with the generation's.
func (g Generation) CheckHAProxy(t testing.TB, cfg []byte) {
	t.Helper()
	if complaint := g.checkHAProxy(t, cfg); complaint != "" {
		t.Errorf("HAProxy refuses the configuration:\n%s\n%s", complaint, numbered(cfg))
	}
}

// checkHAProxy returns HAProxy's messages about cfg, "" if it accepts it.
func checkHAProxy(t testing.TB, cfg []byte) string { t.Helper(); return Installed.checkHAProxy(t, cfg) }

func (g Generation) checkHAProxy(t testing.TB, cfg []byte) string {
	t.Helper()
	haproxy := g.program(t, "haproxy")
	s := newSandboxOf(t, g)
	s.write(t, haproxyCfg, cfg)
	output, err := s.parser(nil, haproxy, "-c", "-f", haproxyCfg).CombinedOutput()
	if err == nil && !strings.Contains(string(output), "[WARNING]") && !strings.Contains(string(output), "[ALERT]") {
		return ""
	}
	return complaint(output, err)
}
