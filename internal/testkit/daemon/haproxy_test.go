package daemon

import (
	"strings"
	"testing"
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

func TestHAProxyAccepts(t *testing.T) { HAProxy(t, []byte(cfg)) }

func TestHAProxyRefuses(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"unknown keyword", "maxconn 20000", "frobnicate 3", "unknown keyword 'frobnicate'"},
		{"missing backend", "default_backend masters", "default_backend nodes", "unable to find required default_backend"},
		{"bad bind", ":::9445", "192.0.2.500:9445", "[ALERT]"},
		{"host name that is not found", "192.0.2.11:6443", "m0.example.com:6443", "could not resolve address"},
		{"a warning alone: no time-outs", "    timeout client 30s\n", "", "[WARNING]"},
		{"a warning alone: server without health check options", "mode tcp", "mode http\n    option forwardfor\n    mode tcp", "[WARNING]"},
		{"same name twice", "    server m0", "    server m0 192.0.2.12:6443\n    server m0", "already"},
		{"no line end", "inter 1s\n", "inter 1s", "[ALERT]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := strings.Replace(cfg, tt.old, tt.new, 1)
			if bad == cfg {
				t.Fatalf("%q is not in the configuration", tt.old)
			}
			if got := checkHAProxy(t, []byte(bad)); !strings.Contains(got, tt.want) {
				t.Errorf("complaint %q, want one with %q", got, tt.want)
			}
		})
	}
}
