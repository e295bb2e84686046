package keepalived

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/fileio"
)

// storedVIPs stores the VIPs that a keepalived of this node may have added to an
// interface, across restarts of the container, until the node reboots. A killed keepalived
// leaves its VIPs (hard case 1), and at the next start the cluster may have others:
// nothing else would remove the old ones.
type storedVIPs struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	stored []netip.Addr

	storing, removing logging.Transitions
}

// read reads the list stored by an earlier process. A file that cannot be read is
// ignored.
func (v *storedVIPs) read() error {
	data, err := os.ReadFile(v.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(data, &v.stored); err != nil {
		v.stored = nil // so that the next add writes it anew
		return err
	}
	v.stored = slices.DeleteFunc(v.stored, func(a netip.Addr) bool { return !a.IsValid() || a.Zone() != "" })
	return nil
}

// add stores VIPs before keepalived gets them, and drops those that are gone.
func (v *storedVIPs) add(added []netip.Addr, gone func(netip.Addr) bool) {
	err := v.store(added, gone)
	v.storing.Warn(v.log, err, "cannot store VIPs: some may stay on this node if keepalived is killed", "VIPs stored again")
}

func (v *storedVIPs) store(list []netip.Addr, gone func(netip.Addr) bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	list = append(slices.DeleteFunc(slices.Clone(v.stored), gone), list...)
	slices.SortFunc(list, netip.Addr.Compare)
	if list = slices.Compact(list); slices.Equal(list, v.stored) {
		return nil
	}
	v.stored = list
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = fileio.Write(v.path, append(data, '\n'), 0o644)
	return err
}

// remove removes the stored and the configured VIPs from every interface (hard case 1).
// keepalived must not run.
func (v *storedVIPs) remove(configured []netip.Addr) error {
	v.mu.Lock()
	list := append(slices.Clone(v.stored), configured...)
	v.mu.Unlock()
	err := removeVIPs(list, v.log)
	v.removing.Error(v.log, err, "cannot remove leftover VIPs", "leftover VIPs removed")
	return err
}
