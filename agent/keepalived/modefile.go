package keepalived

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// target are the VRRP settings that the files of a node want, and when.
type target struct {
	settings v1alpha1.VRRPSettings
	planned  time.Time
	without  []string // nodes that the others do not wait for
	// problem says what is wrong with the mode file; then settings are those of
	// cluster.yaml, and the node moves nowhere.
	problem error
}

// readTarget reads the mode files below root: the user's wins as a whole, also when
// it is wrong.
func readTarget(root string, s *v1alpha1.ClusterConfigSpec) target {
	for _, path := range []string{v1alpha1.UserModeFile, v1alpha1.ModeFile} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		t := target{settings: s.VRRP.Target}
		var m *v1alpha1.ModeFileContent
		if err == nil {
			m, err = v1alpha1.ParseModeFile(data)
		}
		if err == nil {
			var settings v1alpha1.VRRPSettings
			if settings, err = m.Settings(s); err == nil {
				t.settings = settings
			}
		}
		if err != nil {
			t.problem = fmt.Errorf("%s: %w", path, err)
			return t
		}
		t.without = m.Without
		if m.Time != nil {
			t.planned = m.Time.UTC()
		}
		return t
	}
	return target{settings: s.VRRP.Target}
}

// noteModeFile logs and counts a mode file that is wrong.
func (j *Job) noteModeFile(err error) {
	j.choosing.Error(j.Log, err, "the mode file is not right: the node keeps its VRRP settings", "the mode file is right again")
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != j.electing.refused {
		j.electing.counts.Refused++
	}
	j.electing.refused = text
}
