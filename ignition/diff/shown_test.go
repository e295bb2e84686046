package diff

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestShown(t *testing.T) {
	tests := []struct {
		name       string
		file       string
		mode       int
		text, want string
	}{
		{"no secret", "/etc/x.conf", 0o644, "a=1\nkubeconfig: /etc/kubernetes/kubeconfig\n\tend", "a=1\nkubeconfig: /etc/kubernetes/kubeconfig\n\tend"},
		{"a file that its owner reads", "/etc/x", 0o600, "SECRET", ownerOnly},
		{"a pull secret", "/var/lib/kubelet/config.json", 0o644, `{"auths": {"r": {"auth": "SECRET"}}}`, aSecret},
		{"a key", "/etc/x.pem", 0o644, "-----BEGIN PRIVATE KEY-----\nSECRET\n", aSecret},
		{"a field of JSON", "/etc/x.json", 0o644, `{"auths": {"r": {"auth": "SEC\"RET", "email": "a"}}}`, `{"auths": {"r": {"auth": ` + aSecret + `, "email": "a"}}}`},
		{"a field of YAML in braces", "/etc/x.yaml", 0o644, "users: [{user: {token: SECRET}}]\n", "users: [{user: {token: " + aSecret + "}}]\n"},
		{"lines", "/etc/kubeconfig", 0o644, "users:\n- user:\n    token: SECRET\n    client-key-data: SECRET\n", "users:\n- user:\n    token: " + aSecret + "\n    client-key-data: " + aSecret + "\n"},
		{"several words", "/etc/x.env", 0o644, "DB_PASSWORD=SECRET and SECRET\nUSER=a", "DB_PASSWORD=" + aSecret + "\nUSER=a"},
		{"a unit", "x.service", 0, "[Service]\nEnvironment=TOKEN=SECRET\n", "[Service]\nEnvironment=TOKEN=" + aSecret + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Shown(tt.file, tt.mode, tt.text)
			testkit.Equal(t, tt.want, got)
			testkit.Lacks(t, got, "SECRET")
		})
	}
}
