package daemon

import (
	"strings"
	"testing"
)

func TestIgnitionRefuses(t *testing.T) {
	tests := []struct{ name, config, want string }{
		{"no JSON", "{", "fetch: "},
		{"unknown version", `{"ignition": {"version": "9.9.9"}}`, "fetch: "},
		{"relative path", `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "x"}]}}`, "path not absolute"},
		{"the same file twice", `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/x"}, {"path": "/x"}]}}`, "duplicate"},
		{"data that is not gzip", `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/x",
			"contents": {"compression": "gzip", "source": "data:,plain"}}]}}`, "files: "},
		{"hash that differs", `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/x", "contents": {"source": "data:,x",
			"verification": {"hash": "sha256-0000000000000000000000000000000000000000000000000000000000000000"}}}]}}`, "files: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := runIgnition(t, []byte(tt.config)); !strings.Contains(got, tt.want) {
				t.Errorf("complaint %q, want one with %q", got, tt.want)
			}
		})
	}
}
