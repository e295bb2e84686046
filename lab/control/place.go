package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// DefaultBase is the default directory of labs, each in a subdirectory.
const DefaultBase = "/var/lib/vipgen-lab"

// Place is the directory of a lab.
type Place struct {
	Base, Name string
}

// maxSocket is the maximum length of a socket's path (unix(7)).
const maxSocket = 107

// At returns the place of the lab with a name. It does not access the disk.
func At(base, name string) (Place, error) {
	if !v1alpha1.ValidName(name) {
		return Place{}, fmt.Errorf("%q: expected the name of a lab: lower-case letters, digits, hyphens and periods", name)
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return Place{}, err
	}
	p := Place{base, name}
	if n := len(p.socket()); n > maxSocket {
		return Place{}, fmt.Errorf("%s: the path of a socket has %d characters at most, and this one %d: choose a shorter --dir or --name", p.socket(), maxSocket, n)
	}
	return p, nil
}

// Find returns the place of the lab with a name, or, if it is empty, of the only lab.
func Find(base, name string) (Place, error) {
	if name != "" {
		p, err := At(base, name)
		if err == nil && !p.Used() {
			err = &NoLabError{base, name}
		}
		return p, err
	}
	found, err := All(base)
	switch {
	case err != nil:
		return Place{}, err
	case len(found) == 0:
		return Place{}, &NoLabError{base, ""}
	case len(found) > 1:
		return Place{}, fmt.Errorf("there are several labs: choose one with --name, %s", strings.Join(found, " or "))
	}
	return At(base, found[0])
}

// NoLabError is returned if there is no lab with a name, or none at all.
type NoLabError struct{ Base, Name string }

func (e *NoLabError) Error() string {
	which := ""
	if e.Name != "" {
		which = " " + e.Name
	}
	return fmt.Sprintf("there is no lab%s in %s: make one with 'vipgen lab up install-config.yaml'", which, e.Base)
}

// All returns the names of the labs that run or left something behind.
func All(base string) (names []string, err error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if p := (Place{base, e.Name()}); e.IsDir() && p.Used() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// dir returns the lab's directory.
func (p Place) dir() string { return filepath.Join(p.Base, p.Name) }

func (p Place) socket() string { return filepath.Join(p.dir(), "socket") }

// Log returns the path of the lab's log.
func (p Place) Log() string { return filepath.Join(p.dir(), "log") }

// Used reports whether the directory of a lab exists, running or not.
func (p Place) Used() bool {
	_, err := os.Lstat(filepath.Join(p.dir(), recordFile))
	return err == nil
}

// errTaken is returned by lock while another process holds the lock.
var errTaken = errors.New("the lab runs")

// lock locks the lab's directory. The process that runs the lab holds the lock; the kernel releases
// it when that process ends for any reason.
func (p Place) lock() (*os.File, error) {
	f, err := os.Open(p.dir())
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errTaken
	}
	if err == nil {
		err = p.same(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// same returns an error if the directory was removed or replaced since it was opened.
func (p Place) same(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(p.dir())
	if err == nil && !os.SameFile(opened, now) {
		err = fs.ErrNotExist
	}
	return err
}

// running reports whether a process runs the lab.
func (p Place) running() (bool, error) {
	f, err := p.lock()
	switch {
	case errors.Is(err, errTaken):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, f.Close()
}

// acquire creates the directory and locks it, after removing the rest of an earlier lab. cleaned
// reports whether there was one.
func (p Place) acquire() (lock *os.File, cleaned bool, err error) {
	for {
		if err := os.MkdirAll(p.Base, 0o755); err != nil {
			return nil, cleaned, err
		}
		if err := os.Mkdir(p.dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, cleaned, err
		}
		lock, err := p.lock()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed by its last owner
		case errors.Is(err, errTaken):
			return nil, cleaned, fmt.Errorf("the lab %s runs already: look at it with 'vipgen lab status', remove it with 'vipgen lab down', or give the other one another --name", p.Name)
		case err != nil:
			return nil, cleaned, err
		}
		if p.Used() {
			err := p.remove()
			lock.Close()
			if err != nil {
				return nil, cleaned, err
			}
			cleaned = true
			continue
		}
		entries, err := os.ReadDir(p.dir())
		if err == nil && len(entries) > 0 {
			err = fmt.Errorf("%s is not a lab's directory, and not empty: choose another --name or --dir", p.dir())
		}
		if err != nil {
			lock.Close()
			return nil, cleaned, err
		}
		return lock, cleaned, nil
	}
}

// remove removes everything in the record, and the directory. The caller holds the lock.
func (p Place) remove() error {
	r, err := readRecord(p.dir())
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("%s is not a lab's directory", p.dir())
	}
	if err := r.clean(); err != nil {
		return fmt.Errorf("removing what the lab %s left: %w", p.Name, err)
	}
	if err := p.unmount(); err != nil {
		return err
	}
	return p.removeFiles()
}

// unmount unmounts the file systems of nodes that a killed lab left.
func (p Place) unmount() error {
	nodes := filepath.Join(p.dir(), "cluster", "nodes")
	entries, err := os.ReadDir(nodes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, host.UnmountRun(filepath.Join(nodes, e.Name())))
	}
	return err
}

// removeFiles removes the directory, the record last.
func (p Place) removeFiles() error {
	entries, err := os.ReadDir(p.dir())
	for _, e := range entries {
		if e.Name() != recordFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.dir(), e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(p.dir())
}

// Down ends the lab and removes what it made. It waits until the process that runs the lab has
// ended, or ctx ends. ran reports whether the lab ran.
func (p Place) Down(ctx context.Context) (ran bool, err error) {
	for asked := false; ; pause(ctx, 20*time.Millisecond) {
		lock, err := p.lock()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ran, nil
		case errors.Is(err, errTaken):
			ran = true
			if !asked {
				asked, err = p.terminate()
			} else {
				err = nil
			}
			if err == nil && ctx.Err() != nil {
				err = fmt.Errorf("%s does not end: end it with SIGKILL, and then run 'vipgen lab down' again", p.process())
			}
			if err != nil {
				return ran, err
			}
		case err != nil:
			return ran, err
		default:
			defer lock.Close()
			return ran, p.remove()
		}
	}
}

// terminate sends SIGTERM to the process that runs the lab; it returns false if the process is not
// known yet.
func (p Place) terminate() (bool, error) {
	r, err := readRecord(p.dir())
	if r == nil || err != nil {
		return false, err
	}
	process, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil // it has just ended
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(process)
	// The process in the record still holds the lock, so its number cannot have been reused before
	// it was opened.
	if running, err := p.running(); !running {
		return false, err
	}
	return true, unix.PidfdSendSignal(process, unix.SIGTERM, nil, 0)
}

// process describes the process that runs the lab.
func (p Place) process() string {
	r, err := readRecord(p.dir())
	if err != nil || r == nil {
		return "the process that runs the lab " + p.Name
	}
	return fmt.Sprintf("process %d, which runs the lab %s,", r.PID, p.Name)
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
