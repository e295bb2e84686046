package daemon

import (
	"strings"
	"testing"
)

const nginxExample = `include /etc/nginx/modules-enabled/*.conf;
pid /run/nginx.pid;
error_log stderr notice;
events {
}
stream {
    upstream api {
        server 192.0.2.11:6443;
    }
    server {
        listen 6443;
        allow 192.0.2.0/24;
        deny all;
        proxy_pass api;
    }
}
`

func TestNginxAccepts(t *testing.T) { Nginx(t, []byte(nginxExample)) }

func TestNginxRefuses(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"unknown directive", "listen 6443;", "listen 6443; frobnicate;", `unknown directive "frobnicate"`},
		{"no module", "include /etc/nginx/modules-enabled/*.conf;", "", `unknown directive "stream"`},
		{"missing upstream", "proxy_pass api;", "proxy_pass nodes;", "no port in upstream"},
		{"bad network", "192.0.2.0/24", "192.0.2.500", "invalid parameter"},
		{"a warning alone: host bits", "192.0.2.0/24", "192.0.2.1/24", "low address bits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := strings.Replace(nginxExample, tt.old, tt.new, 1)
			if bad == nginxExample {
				t.Fatalf("%q is not in the configuration", tt.old)
			}
			if got := checkNginx(t, []byte(bad)); !strings.Contains(got, tt.want) {
				t.Errorf("complaint %q, want one with %q", got, tt.want)
			}
		})
	}
}
