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
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// recordFile is in the lab's directory from before anything else is made.
const recordFile = "record.json"

// record is what a lab made outside of its directory, as far as that outlives the
// process that runs it: processes of the lab end with it.
type record struct {
	// PID is the process that runs the lab, BootID the run of the kernel that it is
	// of (/proc/sys/kernel/random/boot_id): nothing of another one is there still.
	PID    int    `json:"pid"`
	BootID string `json:"bootID"`
	// Namespaces are those that it made or was about to make. Each may have control
	// groups of the same name.
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

// add notes a namespace on disk.
func (r *record) add(dir, namespace string) error {
	r.Namespaces = append(r.Namespaces, namespace)
	return r.write(dir)
}

// write replaces the record in one step.
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

// clean removes what the record names and is still there. A name that no lab of
// that process can have is an error, and nothing is removed.
func (r *record) clean() error {
	id, err := bootID()
	if err != nil {
		return err
	}
	if r.BootID != id {
		return nil
	}
	// The bridges' namespace was made first and goes last.
	names := slices.Clone(r.Namespaces)
	slices.Reverse(names)
	if err := netns.Remove(r.PID, names...); err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, host.RemoveCgroups("/"+name))
	}
	return errors.Join(errs...)
}
