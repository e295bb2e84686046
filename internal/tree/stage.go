package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const stagePrefix = ".vipgen-stage-"

var errInUse = errors.New("in use")

// removeStages removes the leftovers of killed runs: staged files, and replaced ones, which
// this run writes again.
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
