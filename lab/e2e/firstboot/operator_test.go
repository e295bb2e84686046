package firstboot

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

const unitDir = "etc/systemd/system/"

type object = map[string]any

// dataURL is a source of Ignition with the content in itself (RFC 2397).
func dataURL(data []byte) object {
	return object{"source": "data:;base64," + base64Of(data)}
}

// operatorConfig is an Ignition config with the stand-ins for the operator's files, and more
// files by their paths. Units with an [Install] section are enabled.
func operatorConfig(t testing.TB, more map[string]string) []byte {
	t.Helper()
	var units, files []object
	add := func(name string, data []byte) {
		unit, isUnit := strings.CutPrefix(name, unitDir)
		if isUnit && !strings.Contains(unit, "/") {
			units = append(units, object{"name": unit, "contents": string(data), "enabled": strings.Contains(string(data), "\n[Install]\n")})
			return
		}
		mode := 0o644
		if strings.HasSuffix(name, ".nmconnection") { // required by NetworkManager
			mode = 0o600
		} else if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		files = append(files, object{"path": "/" + name, "mode": mode, "overwrite": true, "contents": dataURL(data)})
	}
	root := os.DirFS("operator")
	testkit.Must(t, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if _, replaced := more["/"+name]; err != nil || d.IsDir() || replaced {
			return err
		}
		data, err := fs.ReadFile(root, name)
		add(name, data)
		return err
	}))
	for name, text := range more {
		add(strings.TrimPrefix(name, "/"), []byte(text))
	}
	out, err := json.Marshal(object{"ignition": object{"version": "3.2.0"}, "systemd": object{"units": units}, "storage": object{"files": files}})
	testkit.Must(t, err)
	return out
}
