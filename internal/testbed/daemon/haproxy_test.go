package daemon

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

const cfg = `global
    maxconn 20000
    log stdout format raw local0
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend api
    bind :::9445 v4v6
    default_backend masters
backend masters
    option httpchk GET /readyz HTTP/1.0
    server m0 192.0.2.11:6443 check check-ssl verify none inter 1s
`

// Each row replaces a part of the configuration above.
func TestHAProxyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown keyword", "maxconn 20000", "frobnicate 3", "unknown keyword 'frobnicate'"},
		{"host name that is not found", "192.0.2.11:6443", "m0.example.com:6443", "could not resolve address"},
		{"a warning alone: no time-outs", "    timeout client 30s\n", "", "[WARNING]"},
		{"no line end", "inter 1s\n", "inter 1s", "[ALERT]"},
	} {
		bad := strings.Replace(cfg, tt.old, tt.new, 1)
		testkit.Contains(testkit.In(t, tt.name), checkHAProxy(t, []byte(bad)), tt.want)
	}
}
