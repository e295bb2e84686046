// Package state shares what one container of a node knows with the others,
// through files in a directory that they all mount. What a file says counts
// only while its writer lives.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Dir is the directory. A writer holds a lock (flock(2)) on each file that it
// published, which the kernel takes away when the writer ends, in whatever way:
// so a reader knows whether the writer lives without a clock, a heartbeat or a
// process ID, which would mean nothing in another container.
type Dir struct {
	path string
	mu   sync.Mutex
	held map[string]published
}

// published is a file that this process wrote, open for the sake of its lock.
type published struct {
	file *os.File
	data []byte
}

// Open makes the directory if it is missing.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("shared state: %w", err)
	}
	return &Dir{path: path, held: map[string]published{}}, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name+".json") }

// Publish makes v, as JSON, what readers of name see from now on, until this
// process ends or publishes anew. A name has one writer; where a pod is replaced
// and two of them meet, the later one counts.
func (d *Dir) Publish(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("shared state %s: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before, again := d.held[name]
	if again && bytes.Equal(before.data, data) && owns(before.file, d.file(name)) {
		return nil
	}
	f, err := d.write(name, data)
	if err != nil {
		return fmt.Errorf("shared state %s: %w", name, err)
	}
	d.held[name] = published{file: f, data: data}
	if again {
		before.file.Close()
	}
	return nil
}

// write puts a file in place that is locked already, so that there is no moment
// at which a reader takes it for one of a writer that is gone.
func (d *Dir) write(name string, data []byte) (f *os.File, err error) {
	f, err = os.CreateTemp(d.path, "."+name+".*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	if err := f.Chmod(0o644); err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	return f, os.Rename(f.Name(), d.file(name))
}

// owns says whether the open file is the one that the path names.
func owns(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// Close withdraws all that was published.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for name, p := range d.held {
		if owns(p.file, d.file(name)) {
			errs = append(errs, os.Remove(d.file(name)))
		}
		errs = append(errs, p.file.Close())
		delete(d.held, name)
	}
	return errors.Join(errs...)
}

// Read reads what is published under name into v. alive is false, and v is left
// alone, when there is nothing or its writer is gone.
func (d *Dir) Read(name string, v any) (alive bool, err error) {
	for {
		f, err := os.Open(d.file(name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("shared state: %w", err)
		}
		alive, stale, err := read(f, d.file(name), v)
		f.Close()
		if err != nil {
			return false, fmt.Errorf("shared state %s: %w", name, err)
		}
		if !stale {
			return alive, nil
		}
	}
}

// read reads an open file. It is stale when it was replaced meanwhile and not
// locked any more for that reason alone.
func read(f *os.File, path string, v any) (alive, stale bool, err error) {
	// A shared lock, so that readers do not take each other for the writer. It
	// goes with the open file, at once.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return false, !owns(f, path), nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return false, false, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return false, false, err
	}
	return true, false, json.Unmarshal(data, v)
}
