// Package trackfile writes the files that keepalived watches: each says 1 or 0 for
// one thing that the agent checks on its node, and keepalived adds the points
// for it to a VRRP priority within milliseconds.
package trackfile

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

	"github.com/vipgen/vipgen/internal/atomicfile"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Files are the track files of a node.
type Files struct {
	dir    string
	mu     sync.Mutex
	values map[string]int // as they are on disk
	over   bool           // nothing changes any more
}

// Value is what a track file says.
type Value struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// Open makes the directory, and empties it of what an earlier run left: its
// keepalived is gone. It must come before keepalived starts, which drops a track
// file for good when its directory is missing.
func Open(dir string) (*Files, error) {
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
	return &Files{dir: dir, values: map[string]int{}}, nil
}

// Ensure makes the files of terms that have none yet, with their initial values.
// It must come before keepalived reads a configuration that names them: a file
// that is missing reads as 0, which lifts a veto.
func (f *Files) Ensure(terms []vrrp.Term) error {
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

// Set makes the file of a term say 1 or 0, in place, so that a full disk does not
// keep a priority up that the node has lost, and only if it says something else. A
// value that could not be written is not taken as written: setting it once more
// tries again. A term without Ensure is an error.
func (f *Files) Set(name string, on bool) (changed bool, err error) {
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

// Withdraw takes the points of terms away for good: Set changes nothing from then on.
// Vetoes stay as they are: they would have the node drop its VIPs before another has them.
func (f *Files) Withdraw(terms []vrrp.Term) error {
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

// Repeat writes all files once more as they are, so that keepalived looks at them
// again.
func (f *Files) Repeat() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		errs = append(errs, f.write(name, f.values[name]))
	}
	return errors.Join(errs...)
}

// write replaces the one digit of a file in place, so that it takes no more room; a file that
// is missing is made. keepalived never sees it empty, which would read as 0, and reads it when
// it is closed.
func (f *Files) write(name string, value int) error {
	path, text := filepath.Join(f.dir, name), []byte(strconv.Itoa(value)+"\n")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt(text, 0)
		err = errors.Join(err, file.Close())
	} else if errors.Is(err, fs.ErrNotExist) {
		_, err = atomicfile.Write(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("track file: %w", err)
	}
	f.values[name] = value
	return nil
}

// Values says what the files say, sorted by name.
func (f *Files) Values() []Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Value
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		out = append(out, Value{Name: name, Value: f.values[name]})
	}
	return out
}
