package keepalived

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// readTarget reads the mode files below root. The user's file replaces the other
// entirely, even if invalid.
func readTarget(root string, s *v1alpha1.ClusterConfigSpec) migration.Target {
	for _, path := range []string{v1alpha1.UserModeFile, v1alpha1.ModeFile} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		t := migration.Target{Settings: s.VRRP.Target}
		var m *v1alpha1.ModeFileContent
		if err == nil {
			m, err = v1alpha1.ParseModeFile(data)
		}
		if err == nil {
			var settings v1alpha1.VRRPSettings
			if settings, err = m.Settings(s); err == nil {
				t.Settings = settings
			}
		}
		if err != nil {
			t.Problem = fmt.Errorf("%s: %w", path, err)
			return t
		}
		t.Without = m.Without
		if m.Time != nil {
			t.Planned = m.Time.UTC()
		}
		return t
	}
	return migration.Target{Settings: s.VRRP.Target}
}

// modeFile counts and logs invalid mode files.
type modeFile struct {
	refused string // the problem counted last
	count   int
	failing logging.Transitions
}

func (m *modeFile) report(err error, log *slog.Logger) {
	m.failing.Error(log, err, "mode file invalid: the node keeps its VRRP settings", "mode file valid again")
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != m.refused {
		m.count++
	}
	m.refused = text
}
