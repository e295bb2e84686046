package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// stagePrefix begins the names of folders that files are staged in.
const stagePrefix = ".vipgen-stage-"

// errInUse says that somebody has the lock.
var errInUse = errors.New("in use")

// removeStages removes what runs that were killed have left: files to be put in
// place, and those that were to be replaced, which this run writes anew.
func removeStages(dir string, root *os.Root) error {
	left, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*"))
	if err != nil {
		return err
	}
	for _, stage := range left {
		inUse, err := lock(stage)
		if errors.Is(err, errInUse) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(inUse.Close(), root.RemoveAll(filepath.Base(stage))); err != nil {
			return err
		}
	}
	return nil
}
