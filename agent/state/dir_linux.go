package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is the directory with the states of the jobs. A writer holds a lock (flock(2)) on
// each published file, which the kernel releases when the writer ends in any way: readers
// know whether the writer lives without a clock, a heartbeat or a process ID, which means
// nothing in another container.
type Dir struct {
	path string
	mu   sync.Mutex
	held map[string]published
	late map[string]*time.Timer // pending retries
}

// maxSize bounds a state at many times its usual size, in bytes.
const maxSize = 4 << 20

const writeAgain = time.Second

// published is a file written by this process, open to hold its lock.
type published struct {
	file *os.File
	data []byte
}

// fileName is the file with the state of a job in its directory.
const fileName = "state.json"

// Open opens a directory, and creates it if it is missing.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("shared state: %w", err)
	}
	return &Dir{path: path, held: map[string]published{}, late: map[string]*time.Timer{}}, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name, fileName) }

// Publish publishes j, as JSON, until this process ends or publishes anew. A job has one
// writer; while a pod is replaced and two writers meet, the later one counts.
//
// On a full disk j overwrites the previous state in place (hard case 54). If it does not
// fit, the previous state is withdrawn, because it is outdated: readers find no writer.
// Publish retries until the state is written or replaced; the error is for the log.
// Liveness is independent of it (internal/liveness).
func (d *Dir) Publish(j Job) error {
	name := j.JobName()
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("shared state %s: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.publish(name, data)
}

func (d *Dir) publish(name string, data []byte) error {
	if late := d.late[name]; late != nil {
		late.Stop()
		delete(d.late, name)
	}
	before, again := d.held[name]
	if again && bytes.Equal(before.data, data) && owns(before.file, d.file(name)) {
		return nil
	}
	f, err := d.write(name, padded(data))
	if err == nil {
		if again {
			before.file.Close()
		}
		d.held[name] = published{file: f, data: data}
		return nil
	}
	if again && d.overwrite(name, before.file, data) == nil {
		d.held[name] = published{file: before.file, data: data}
		return nil
	}
	if again {
		before.file.Close()
		delete(d.held, name)
	}
	d.later(name, data)
	// The temporary file has another name at every attempt, but repeated failures must
	// have the same text.
	if number := syscall.Errno(0); errors.As(err, &number) {
		err = number
	}
	return fmt.Errorf("shared state %s: %w", d.file(name), err)
}

// later retries, unless another state is published first.
func (d *Dir) later(name string, data []byte) {
	var timer *time.Timer
	timer = time.AfterFunc(writeAgain, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.late[name] == timer {
			d.publish(name, data) // the error was returned the first time
		}
	})
	d.late[name] = timer
}

// write renames a file into place that is already locked, so that no reader takes it for
// one of a dead writer.
func (d *Dir) write(name string, data []byte) (*os.File, error) {
	dir := filepath.Join(d.path, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "."+fileName+".*") // only for root: anyone who can open a file can lock it
	if err != nil {
		return nil, err
	}
	if err := place(f, data, d.file(name)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

func place(f *os.File, data []byte, path string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func owns(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// Close withdraws all published states.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, late := range d.late {
		late.Stop()
		delete(d.late, name)
	}
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

// Read returns the published state of a job, nil if there is none or its writer is dead.
func Read[T Job](d *Dir) (*T, error) {
	v := new(T)
	name := (*v).JobName()
	for {
		// Another job may be compromised: do not block on a FIFO, or follow a link, in
		// place of its file.
		f, err := os.OpenFile(d.file(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("shared state: %w", err)
		}
		alive, stale, err := read(f, d.file(name), v)
		f.Close()
		switch {
		case err != nil:
			return nil, fmt.Errorf("shared state %s: %w", name, err)
		case alive:
			return v, nil
		case !stale:
			return nil, nil
		}
	}
}

// read reads an open file. It is stale if it was replaced meanwhile, and unlocked only
// for that reason.
func read(f *os.File, path string, v any) (alive, stale bool, err error) {
	// A shared lock, so that readers do not take each other for the writer. Closing the
	// file releases it.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return false, !owns(f, path), nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return false, false, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, false, errors.Join(err, errors.New("not a regular file"))
	}
	data, err := Settled(f)
	if err != nil {
		return false, false, err
	}
	return true, false, json.Unmarshal(data, v)
}
