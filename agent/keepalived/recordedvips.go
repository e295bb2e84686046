package keepalived

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// recordedVIPs remembers the VIPs that a keepalived of this node may have put on an
// interface, over restarts of the container and until the node boots. One that is
// killed leaves its VIPs (hard case 1), and by the next start the cluster may have
// others: nobody else would remove those.
type recordedVIPs struct {
	path string

	mu   sync.Mutex
	vips []netip.Addr

	failing logging.Transitions // of the loop's goroutine
}

// open reads what an earlier process left; what cannot be read says nothing.
func (p *recordedVIPs) open(path string) error {
	p.path = path
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(data, &p.vips); err != nil {
		p.vips = nil // so that the next note writes it anew
		return err
	}
	p.vips = slices.DeleteFunc(p.vips, func(a netip.Addr) bool { return !a.IsValid() || a.Zone() != "" })
	return nil
}

// note adds VIPs before keepalived gets to know them, and forgets those that are
// gone.
func (p *recordedVIPs) note(vips []netip.Addr, gone func(netip.Addr) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	vips = append(slices.DeleteFunc(slices.Clone(p.vips), gone), vips...)
	slices.SortFunc(vips, netip.Addr.Compare)
	if vips = slices.Compact(vips); slices.Equal(vips, p.vips) {
		return nil
	}
	p.vips = vips
	data, err := json.Marshal(vips)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(p.path, append(data, '\n'), 0o644)
	return err
}

// with are those VIPs, and the ones of a configuration.
func (p *recordedVIPs) with(vips []netip.Addr) []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.vips), vips...)
}
