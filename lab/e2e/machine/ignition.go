package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// presets is the file of the units that Ignition enables.
const presets = "/etc/systemd/system-preset/20-ignition.preset"

// Ignite runs the Ignition engine, a program of this machine, with a config as on a first boot:
// from outside of the machine's root, on its network. It fetches what the config refers to, and
// writes all of it.
func (m *Machine) Ignite(ctx context.Context, engine string, config []byte) error {
	dir, err := os.MkdirTemp(m.Dir(), "ignition-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.ign")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	for _, stage := range []string{"fetch", "files"} {
		cmd := m.Exec(ctx, engine, "-platform", "file", "-stage", stage, "-root", m.Path("/"),
			"-config-cache", filepath.Join(dir, "cache"), "-state-file", filepath.Join(dir, "state"), "-log-to-stdout")
		// The directory of base configs, which come with an image, is empty.
		cmd.Env = []string{"PATH=" + searchPath, "IGNITION_CONFIG_FILE=" + file, "IGNITION_SYSTEM_CONFIG_DIR=" + dir + "/base"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("stage %s of Ignition on %s: %w: %s", stage, m.Name, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// EnabledUnits returns the units that Ignition has enabled, in its order.
func (m *Machine) EnabledUnits() ([]string, error) {
	text, err := m.Read(presets)
	if err != nil {
		return nil, err
	}
	var units []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "enable "); ok {
			units = append(units, name)
		}
	}
	return units, nil
}
