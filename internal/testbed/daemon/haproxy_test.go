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

func TestHAProxyAccepts(t *testing.T) { HAProxy(t, []byte(cfg)) }

func TestHAProxyRefuses(t *testing.T) {
	refuses(t, checkHAProxy, cfg, []refusal{
		{"unknown keyword", "maxconn 20000", "frobnicate 3", "unknown keyword 'frobnicate'"},
		{"missing backend", "default_backend masters", "default_backend nodes", "unable to find required default_backend"},
		{"bad bind", ":::9445", "192.0.2.500:9445", "[ALERT]"},
		{"host name that is not found", "192.0.2.11:6443", "m0.example.com:6443", "could not resolve address"},
		{"a warning alone: no time-outs", "    timeout client 30s\n", "", "[WARNING]"},
		{"a warning alone: server without health check options", "mode tcp", "mode http\n    option forwardfor\n    mode tcp", "[WARNING]"},
		{"same name twice", "    server m0", "    server m0 192.0.2.12:6443\n    server m0", "already"},
		{"no line end", "inter 1s\n", "inter 1s", "[ALERT]"},
	})
}

// refusal is an error that a daemon refuses: a replacement of a part of a good configuration,
// and a part of the message.
type refusal struct{ name, old, new, want string }

// refuses makes one error after the other in a good configuration.
func refuses(t *testing.T, check func(testing.TB, []byte) string, good string, list []refusal) {
	for _, tt := range list {
		t.Run(tt.name, func(t *testing.T) {
			bad := strings.Replace(good, tt.old, tt.new, 1)
			if bad == good {
				t.Fatalf("%q is not in the configuration", tt.old)
			}
			testkit.Contains(t, check(t, []byte(bad)), tt.want)
		})
	}
}
