package haproxy

import "testing"

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"HA-Proxy version 2.2.9-2+deb11u6 2023/12/23 - https://haproxy.org/\nStatus: long-term\n": "2.2",
		"HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\n":                    "2.6",
		"HAProxy version 3.0.11-1+deb13u3 2026/05/20 - https://haproxy.org/\n":                    "3.0",
		"[NOTICE] something first\nHAProxy version 10.12-dev3 2030/01/01\n":                       "10.12",
		"":                      "",
		"nginx version 1.2.3\n": "",
	} {
		got, err := parseVersion([]byte(out))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", out, got, err, want)
		}
	}
}
