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

// Dir is the directory with those of the jobs. A writer holds a lock (flock(2)) on each
// file that it published, which the kernel takes away when the writer ends, in whatever
// way: so a reader knows whether the writer lives without a clock, a heartbeat or a
// process ID, which would mean nothing in another container.
type Dir struct {
	path string
	mu   sync.Mutex
	held map[string]published
	late map[string]*time.Timer // writes that are tried again
}

// maxSize is many times what a job says, in bytes.
const maxSize = 4 << 20

// writeAgain is when to try again what could not be written.
const writeAgain = time.Second

// published is a file that this process wrote, open for the sake of its lock.
type published struct {
	file *os.File
	data []byte
}

// fileName is what a job says, in its directory.
const fileName = "state.json"

// Open makes the directory if it is missing.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("shared state: %w", err)
	}
	return &Dir{path: path, held: map[string]published{}, late: map[string]*time.Timer{}}, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name, fileName) }

// Publish makes j, as JSON, what readers of the job see from now on, until this
// process ends or publishes anew. A job has one writer; where a pod is replaced
// and two of them meet, the later one counts.
//
// On a full disk j takes the room of what was published before (hard case 54). Where it does
// not fit, what was published before does not count any more, since it is not so: readers
// find no writer. It is tried again until it is there or replaced; the error is for the log.
// Whether a job lives is asked otherwise (internal/liveness).
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
	// The temporary file has another name at every attempt, whereas the same
	// failure is to read the same.
	if number := syscall.Errno(0); errors.As(err, &number) {
		err = number
	}
	return fmt.Errorf("shared state %s: %w", d.file(name), err)
}

// later tries again unless something else was published meanwhile.
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

// write puts a file in place that is locked already, so that there is no moment
// at which a reader takes it for one of a writer that is gone.
func (d *Dir) write(name string, data []byte) (*os.File, error) {
	dir := filepath.Join(d.path, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "."+fileName+".*") // for root alone: who can open a file can lock it
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

// Read reads what a job of that type published. It is nil when there is nothing or its
// writer is gone.
func Read[T Job](d *Dir) (*T, error) {
	v := new(T)
	name := (*v).JobName()
	for {
		// Another job may have been taken over: nobody waits for a FIFO, or follows a
		// link, that stands in the place of its file.
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
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, false, errors.Join(err, errors.New("not a regular file"))
	}
	data, err := settled(f)
	if err != nil {
		return false, false, err
	}
	return true, false, json.Unmarshal(data, v)
}
