package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// apply stages every new file beside its place, then swaps them in. What was
// there is kept until the last one is in, and put back when something fails.
func (d Dir) apply(changes []Change) (err error) {
	if err := os.MkdirAll(d.Path, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(d.Path, ".vipgen-stage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	for i, c := range changes {
		if c.Kind == Stale {
			continue
		}
		if err := os.WriteFile(staged(stage, i, "new"), c.Got, 0o644); err != nil {
			return fmt.Errorf("%s: %w", d.abs(c.Path), err)
		}
	}
	done := 0
	defer func() {
		if err == nil {
			return
		}
		for i := done - 1; i >= 0; i-- {
			err = errors.Join(err, d.restore(stage, i, changes[i]))
		}
	}()
	for i, c := range changes {
		if err := d.swap(stage, i, c); err != nil {
			return err
		}
		done++
	}
	d.removeEmpty(changes)
	return nil
}

func staged(stage string, i int, what string) string {
	return filepath.Join(stage, fmt.Sprintf("%d.%s", i, what))
}

// swap moves the old file away and the new one in.
func (d Dir) swap(stage string, i int, c Change) error {
	target := d.abs(c.Path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if c.Kind != Missing {
		if err := os.Rename(target, staged(stage, i, "old")); err != nil {
			return err
		}
	}
	if c.Kind == Stale {
		return nil
	}
	if err := os.Rename(staged(stage, i, "new"), target); err != nil {
		return errors.Join(err, d.restore(stage, i, c))
	}
	return nil
}

// restore undoes a swap.
func (d Dir) restore(stage string, i int, c Change) error {
	if c.Kind == Missing {
		if err := os.Remove(d.abs(c.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.Rename(staged(stage, i, "old"), d.abs(c.Path))
}

// removeEmpty removes directories that stale files have left empty.
func (d Dir) removeEmpty(changes []Change) {
	for _, c := range changes {
		if c.Kind != Stale {
			continue
		}
		for dir := filepath.Dir(d.abs(c.Path)); dir != filepath.Clean(d.Path); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break
			}
		}
	}
}

// WriteFile replaces one file as a whole or not at all, keeping its mode.
func WriteFile(name string, data []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	temporary := f.Name()
	f.Close()
	err = errors.Join(writeSynced(temporary, data), os.Chmod(temporary, mode))
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		os.Remove(temporary)
		return err
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

func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
