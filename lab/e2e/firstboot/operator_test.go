package firstboot

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/assets"
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
	each(t, func(name string, data []byte) {
		if _, replaced := more["/"+name]; !replaced {
			add(name, data)
		}
	})
	for name, text := range more {
		add(strings.TrimPrefix(name, "/"), []byte(text))
	}
	out, err := json.Marshal(object{"ignition": object{"version": "3.2.0"}, "systemd": object{"units": units}, "storage": object{"files": files}})
	testkit.Must(t, err)
	return out
}

// each calls do with the path and the content of every stand-in.
func each(t testing.TB, do func(name string, data []byte)) {
	t.Helper()
	root := os.DirFS("operator")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		do(name, data)
		return err
	})
	testkit.Must(t, err)
}

// notOfTheOperator are stand-ins for files that are not the operator's.
var notOfTheOperator = map[string]string{
	unitDir + "crio-wipe.service":                             "CRI-O's",
	unitDir + "openvswitch.service":                           "Open vSwitch's",
	unitDir + "firstboot-osupdate.target":                     "of every cluster, also without VIPs",
	"etc/configure-ovs.sh":                                    "what ovs-configuration.service runs",
	"etc/NetworkManager/conf.d/10-links.conf":                 "this rig's",
	"etc/NetworkManager/system-connections/eth0.nmconnection": "NetworkManager's own",
}

// TestStandIns: each stands for a file that the operator contract lists as kept or replaced,
// and names its row.
func TestStandIns(t *testing.T) {
	each(t, func(name string, data []byte) {
		row := "/" + name
		if unit, ok := strings.CutPrefix(name, unitDir); ok {
			row, _, _ = strings.Cut(unit, "/")
			row = strings.TrimSuffix(row, ".d")
		}
		known := slices.ContainsFunc(assets.Contract, func(e assets.Entry) bool { return e.Name == row && e.Treatment != assets.Supplied })
		if known == (notOfTheOperator[name] != "") {
			t.Errorf("%s: in the contract: %t, in the list of others': %q", name, known, notOfTheOperator[name])
		}
		if known && !strings.Contains(string(data), "# Contract: "+row) {
			t.Errorf("%s does not name its row", name)
		}
	})
}
