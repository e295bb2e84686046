package health

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// TrackFiles are the files of a node that keepalived watches: each contains 1 or 0 for a term
// that the agent evaluates, and keepalived adds its points to a VRRP priority within
// milliseconds.
type TrackFiles struct {
	dir    string
	mu     sync.Mutex
	values map[string]int // values on disk
	over   bool           // withdrawn: no more changes
}

// TrackValue is the content of a track file.
type TrackValue struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// OpenTrackFiles creates the directory, and removes the files of an earlier run, whose keepalived
// is gone. It must be called before keepalived starts, which drops a track file for good
// if its directory is missing.
func OpenTrackFiles(dir string) (*TrackFiles, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("track files: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("track files: %w", err)
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("track files: %w", err)
		}
	}
	return &TrackFiles{dir: dir, values: map[string]int{}}, nil
}

// Ensure creates missing files of terms with their initial values. It must be called
// before keepalived reads a configuration that names them: a missing file counts as 0,
// which lifts a veto.
func (f *TrackFiles) Ensure(terms []vrrp.Term) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range terms {
		if _, known := f.values[t.Name]; known {
			continue
		}
		if err := f.write(t.Name, t.Initial); err != nil {
			return err
		}
	}
	return nil
}

// Set writes 1 or 0 to the file of a term if it has another value, in place, so that a
// full disk cannot keep a lost priority up. A failed write is not remembered: the next
// Set tries again. A term without Ensure is an error.
func (f *TrackFiles) Set(name string, on bool) (changed bool, err error) {
	value := 0
	if on {
		value = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	have, known := f.values[name]
	if !known {
		return false, fmt.Errorf("no track file %q", name)
	}
	if have == value || f.over {
		return false, nil
	}
	err = f.write(name, value)
	return err == nil, err
}

// Withdraw removes the points of terms for good: Set has no effect after that. Vetoes
// stay: they would make the node drop its VIPs before another node has them.
func (f *TrackFiles) Withdraw(terms []vrrp.Term) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	var errs []error
	for _, t := range terms {
		if t.Points > 0 && f.values[t.Name] != 0 {
			errs = append(errs, f.write(t.Name, 0))
		}
	}
	return errors.Join(errs...)
}

// Repeat writes all files again unchanged, so that keepalived reads them again.
func (f *TrackFiles) Repeat() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(lists.Map(slices.Sorted(maps.Keys(f.values)), func(name string) error { return f.write(name, f.values[name]) })...)
}

// write replaces the one digit of a file in place, which needs no space, or creates a
// missing file. keepalived never sees an empty file, which would count as 0, and reads it
// when it is closed.
func (f *TrackFiles) write(name string, value int) error {
	path, text := filepath.Join(f.dir, name), []byte(strconv.Itoa(value)+"\n")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt(text, 0)
		err = errors.Join(err, file.Close())
	} else if errors.Is(err, fs.ErrNotExist) {
		_, err = fileio.Write(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("track file: %w", err)
	}
	f.values[name] = value
	return nil
}

// Values returns the contents of the files, sorted by name.
func (f *TrackFiles) Values() []TrackValue {
	f.mu.Lock()
	defer f.mu.Unlock()
	return lists.Map(slices.Sorted(maps.Keys(f.values)), func(name string) TrackValue { return TrackValue{Name: name, Value: f.values[name]} })
}
