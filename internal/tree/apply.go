package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// apply stages every new file next to its place, then swaps them in. Old files are kept until
// the last one is in, and restored on failure.
func (d Dir) apply(changes []Change) error {
	if _, err := os.Lstat(d.Path); errors.Is(err, fs.ErrNotExist) {
		return d.create(changes)
	}
	made, err := makeDir(d.Path)
	if err != nil {
		return err
	}
	if err := d.replace(changes); err != nil {
		return errors.Join(err, removeAll(made, os.Remove))
	}
	return nil
}

// create creates a missing directory: next to its place, and then in one step.
func (d Dir) create(changes []Change) (err error) {
	made, err := makeDir(filepath.Dir(filepath.Clean(d.Path)))
	if err != nil {
		return err
	}
	stage, err := stageNextTo(filepath.Clean(d.Path))
	if err != nil {
		return errors.Join(d.failure(".", err), removeAll(made, os.Remove))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage), removeAll(made, os.Remove))
		}
	}()
	dirs := map[string]bool{".": true}
	for _, c := range changes {
		name := filepath.Join(stage, filepath.FromSlash(c.Path)) // checkPaths has checked it
		if dir := path.Dir(c.Path); !dirs[dir] {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return d.failure(c.Path, err)
			}
			dirs[dir] = true
		}
		if err := os.WriteFile(name, c.Got, 0o644); err != nil {
			return d.failure(c.Path, err)
		}
	}
	return d.failure(".", os.Rename(stage, filepath.Clean(d.Path)))
}

// stages numbers the directories that this process has staged.
var stages atomic.Int64

// stageNextTo creates a directory next to another, with the mode of directories here.
func stageNextTo(dir string) (string, error) {
	for {
		stage := filepath.Join(filepath.Dir(dir), fmt.Sprintf(".vipgen-stage-%d-%d", os.Getpid(), stages.Add(1)))
		if err := os.Mkdir(stage, 0o755); !errors.Is(err, fs.ErrExist) {
			return stage, err
		}
	}
}

// makeDir creates a directory and returns the created ones, outermost first.
func makeDir(dir string) ([]string, error) {
	var missing []string
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, p)
	}
	slices.Reverse(missing)
	return missing, os.MkdirAll(dir, 0o755)
}

// removeAll removes created directories, innermost first.
func removeAll(made []string, remove func(string) error) error {
	var err error
	for _, dir := range slices.Backward(made) {
		err = errors.Join(err, remove(dir))
	}
	return err
}

// swapper carries one replacement through its steps.
type swapper struct {
	Dir
	root  *os.Root
	stage string
	// made are created directories, outermost first.
	made []string
}

// replace does the work in an existing directory.
func (d Dir) replace(changes []Change) (err error) {
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := removeStages(d.Path, root); err != nil {
		return d.failure(".", err)
	}
	stage, err := os.MkdirTemp(d.Path, stagePrefix)
	if err != nil {
		return d.failure(".", err)
	}
	inUse, err := lock(stage)
	if err != nil {
		return err
	}
	s := &swapper{Dir: d, root: root, stage: filepath.Base(stage)}
	done := 0
	defer func() {
		if err != nil {
			for i := done - 1; i >= 0; i-- {
				err = errors.Join(err, s.restore(i, changes[i]))
			}
			err = errors.Join(err, removeAll(s.made, root.Remove))
		}
		// Windows removes no folder with an open file. A concurrent removal does the same.
		err = errors.Join(err, inUse.Close(), root.RemoveAll(s.stage))
	}()
	for i, c := range changes {
		if c.Kind == Stale {
			continue
		}
		if err := root.WriteFile(s.staged(i, "new"), c.Got, 0o644); err != nil {
			return d.failure(c.Path, err)
		}
	}
	for i, c := range changes {
		if err := s.swap(i, c); err != nil {
			return err
		}
		done++
	}
	s.removeEmpty(changes)
	return nil
}

func (s *swapper) staged(i int, what string) string {
	return fmt.Sprintf("%s/%d.%s", s.stage, i, what)
}

// swap moves the old file away and the new one in.
func (s *swapper) swap(i int, c Change) error {
	if err := s.mkdir(path.Dir(c.Path)); err != nil {
		return err
	}
	if c.Kind != Missing {
		if err := s.root.Rename(c.Path, s.staged(i, "old")); err != nil {
			return s.failure(c.Path, err)
		}
	}
	if c.Kind == Stale {
		return nil
	}
	if err := s.root.Rename(s.staged(i, "new"), c.Path); err != nil {
		if c.Kind != Missing {
			err = errors.Join(err, s.restore(i, c))
		}
		return s.failure(c.Path, err)
	}
	return nil
}

func (s *swapper) mkdir(dir string) error {
	if _, err := s.root.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return s.failure(dir, err)
	}
	if err := s.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, 0o755); err != nil {
		return s.failure(dir, err)
	}
	s.made = append(s.made, dir)
	return nil
}

func (s *swapper) restore(i int, c Change) error {
	if c.Kind == Missing {
		return s.root.Remove(c.Path)
	}
	return s.root.Rename(s.staged(i, "old"), c.Path)
}

// removeEmpty removes directories that stale files have left empty.
func (s *swapper) removeEmpty(changes []Change) {
	for _, c := range changes {
		if c.Kind != Stale {
			continue
		}
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			if s.root.Remove(dir) != nil {
				break
			}
		}
	}
}

// WriteFile replaces one file atomically, keeping its mode.
func WriteFile(name string, data []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return named(name, err)
	}
	temporary := f.Name()
	f.Close()
	err = errors.Join(writeSynced(temporary, data), os.Chmod(temporary, mode))
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		os.Remove(temporary)
		return named(name, err)
	}
	return syncDir(filepath.Dir(name))
}

func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// WriteReport writes a file as WriteFile does, or nothing without a name.
func WriteReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return WriteFile(name, b.Bytes())
}
