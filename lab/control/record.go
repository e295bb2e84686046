package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// recordFile is created in the lab's directory before anything else.
const recordFile = "record.json"

// record lists what a lab made outside of its directory and what outlives the process that runs it.
// Processes of the lab end with it.
type record struct {
	// PID is the process that runs the lab. BootID is the boot in which it runs
	// (/proc/sys/kernel/random/boot_id): nothing of another boot is left.
	PID    int    `json:"pid"`
	BootID string `json:"bootID"`
	// Namespaces are the network namespaces that it created or was about to create. Each may have
	// control groups of the same name, and a directory (lab.RouterDir).
	Namespaces []string `json:"namespaces"`
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

func newRecord() (*record, error) {
	id, err := bootID()
	return &record{PID: os.Getpid(), BootID: id}, err
}

// add adds a namespace to the record on disk.
func (r *record) add(dir, namespace string) error {
	r.Namespaces = append(r.Namespaces, namespace)
	return r.write(dir)
}

// write replaces the record atomically.
func (r *record) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, "."+recordFile+".new")
	if err := os.WriteFile(fresh, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(dir, recordFile))
}

// readRecord returns nil for a directory without a record.
func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	return r, nil
}

// clean removes everything in the record that still exists. If a name cannot be a lab's of that
// process, it returns an error and removes nothing.
func (r *record) clean() error {
	id, err := bootID()
	if err != nil {
		return err
	}
	if r.BootID != id {
		return nil
	}
	// The bridges' namespace was created first and is removed last.
	names := slices.Clone(r.Namespaces)
	slices.Reverse(names)
	if err := netns.Remove(r.PID, names...); err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, host.RemoveCgroups("/"+name), os.RemoveAll(lab.RouterDir(name)))
	}
	return errors.Join(errs...)
}
