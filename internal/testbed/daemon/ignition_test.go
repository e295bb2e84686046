package daemon

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestIgnitionWrites(t *testing.T) {
	root := Ignition(t, []byte(`{
	"ignition": {"version": "3.4.0"},
	"storage": {
		"directories": [{"path": "/etc/keepalived", "mode": 493}],
		"files": [
			{"path": "/etc/vipgen/plain", "mode": 420, "contents": {"source": "data:,a%20b%0A"}},
			{"path": "/etc/vipgen/gzip", "mode": 493, "contents": {"compression": "gzip",
				"source": "data:;base64,H4sIAAAAAAACA8tIzcnJ5wIAIDA6NgYAAAA="}}
		],
		"links": [{"path": "/etc/vipgen/link", "target": "plain"}]
	},
	"systemd": {"units": [
		{"name": "a.service", "enabled": true, "contents": "[Install]\nWantedBy=multi-user.target\n",
			"dropins": [{"name": "10-x.conf", "contents": "[Unit]\n"}]},
		{"name": "b.service", "mask": true}
	]}
}`))
	want := map[string]string{
		"etc/keepalived":                               "drwxr-xr-x",
		"etc/vipgen/plain":                             "-rw-r--r-- a b\n",
		"etc/vipgen/gzip":                              "-rwxr-xr-x hello\n",
		"etc/vipgen/link":                              "-> plain",
		"etc/systemd/system/a.service":                 "-rw-r--r-- [Install]\nWantedBy=multi-user.target\n",
		"etc/systemd/system/a.service.d/10-x.conf":     "-rw-r--r-- [Unit]\n",
		"etc/systemd/system/b.service":                 "-> /dev/null",
		"etc/systemd/system-preset/20-ignition.preset": "-rw-r--r-- enable a.service\n",
	}
	got := tree(t, root)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s: %q, want %q", path, got[path], want[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[path]; !wanted && !strings.HasPrefix(got[path], "d") {
			t.Errorf("%s was not asked for: %q", path, got[path])
		}
	}
}

// tree returns everything below root: the mode and content of files, the mode of directories,
// the target of links.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		case 0:
			data, err := os.ReadFile(path)
			found[name] = info.Mode().String() + " " + string(data)
			return err
		}
		found[name] = info.Mode().String()
		return nil
	})
	testkit.Must(t, err)
	return found
}

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
