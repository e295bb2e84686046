package daemon

import "testing"

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
	refuses(t, checkNginx, nginxExample, []refusal{
		{"unknown directive", "listen 6443;", "listen 6443; frobnicate;", `unknown directive "frobnicate"`},
		{"no module", "include /etc/nginx/modules-enabled/*.conf;", "", `unknown directive "stream"`},
		{"missing upstream", "proxy_pass api;", "proxy_pass nodes;", "no port in upstream"},
		{"bad network", "192.0.2.0/24", "192.0.2.500", "invalid parameter"},
		{"a warning alone: host bits", "192.0.2.0/24", "192.0.2.1/24", "low address bits"},
	})
}
