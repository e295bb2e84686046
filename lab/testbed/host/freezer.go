package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Freeze pauses everything in the host's containers at the same moment, as a hypervisor pauses a
// virtual machine, and returns when all processes are frozen. The host's kernel is not paused: it
// answers for the host's addresses, accepts connections, and queues packets.
func (h *Host) Freeze(ctx context.Context) error { return h.freezer(ctx, true) }

// Thaw undoes Freeze.
func (h *Host) Thaw(ctx context.Context) error { return h.freezer(ctx, false) }

// freezerFile holds the interface of a control group's freezer, in version 1 and 2 (the kernel's
// freezer-subsystem.rst and cgroup-v2.rst).
type freezerFile struct {
	path, freeze, thaw    string
	state, frozen, thawed string
}

func (h *Host) freezerFile() (freezerFile, error) {
	v1 := filepath.Join(cgroupRoot, "freezer", h.Cgroup(), "freezer.state")
	if _, err := os.Stat(v1); err == nil {
		return freezerFile{path: v1, freeze: "FROZEN", thaw: "THAWED", state: v1, frozen: "FROZEN", thawed: "THAWED"}, nil
	}
	v2 := filepath.Join(cgroupRoot, h.Cgroup())
	f := freezerFile{path: v2 + "/cgroup.freeze", freeze: "1", thaw: "0", state: v2 + "/cgroup.events", frozen: "frozen 1", thawed: "frozen 0"}
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("freezing %s: no container runs on it", h.Name)
	} else if err != nil {
		return f, err
	}
	return f, nil
}

// freezing is the time limit for a control group to freeze or thaw.
const freezing = 10 * time.Second

func (h *Host) freezer(ctx context.Context, freeze bool) error {
	f, err := h.freezerFile()
	if err != nil {
		return err
	}
	write, want := f.thaw, f.thawed
	if freeze {
		write, want = f.freeze, f.frozen
	}
	ctx, cancel := context.WithTimeout(ctx, freezing)
	defer cancel()
	if err := os.WriteFile(f.path, []byte(write), 0); err != nil {
		return err
	}
	for {
		now, err := os.ReadFile(f.state)
		if err != nil || bytes.Contains(now, []byte(want)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to say %s: %w", f.state, want, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
