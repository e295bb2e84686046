package keepalived

import (
	"encoding/json"
	"os"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// readSettings returns what writeSettings wrote, nil for a file that is missing
// or worth nothing.
func readSettings(path string) *v1alpha1.VRRPSettings {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var v v1alpha1.VRRPSettings
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	n := v1alpha1.Node{Name: "node", Role: v1alpha1.RoleMaster, VRRP: &v}
	if n.Validate().Err() != nil {
		return nil
	}
	return &v
}

func writeSettings(path string, v v1alpha1.VRRPSettings) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(path, append(data, '\n'), 0o644)
	return err
}
