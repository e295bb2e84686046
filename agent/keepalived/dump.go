package keepalived

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// dump reads keepalived's dump file, its own view of the instances. The file is as old as
// the last probe that requested it.
type dump struct {
	path    string
	at      syscall.Timespec
	holders map[string]state.Holder // by instance
}

// half is the age below which the file may be half written: the kernel gives writes
// within a few milliseconds the same time, so a later one would go unnoticed.
const half = 100 * time.Millisecond

// poll reads the file if it changed, and returns the holders of VIPs that other nodes
// hold.
func (d *dump) poll() map[string]state.Holder {
	at, err := writtenAt(d.path)
	if err != nil || at == d.at {
		return d.holders
	}
	if age := time.Since(time.Unix(at.Unix())); 0 <= age && age < half { // a negative age: the clock was set
		return d.holders
	}
	d.at, d.holders = at, nil
	if data, err := os.ReadFile(d.path); err == nil {
		d.holders = parseDump(data)
	}
	return d.holders
}

// parseDump returns the holders of VIPs of all backup instances in a dump, which
// keepalived writes for people to read. Unreadable parts are skipped.
func parseDump(data []byte) map[string]state.Holder {
	out := map[string]state.Holder{}
	name, backup := "", false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), " = ")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "VRRP Instance":
			name, backup = value, false
		case "State":
			backup = value == "BACKUP"
		case "Master router":
			if a, err := netip.ParseAddr(value); err == nil && backup && name != "" && !a.IsUnspecified() && !a.IsMulticast() {
				out[name] = state.Holder{Address: a.WithZone("")}
			}
		case "Master priority":
			h, known := out[name]
			if n, err := strconv.Atoi(value); err == nil && known && h.Priority == 0 && 0 < n && n < 256 {
				h.Priority = n
				out[name] = h
			}
		}
	}
	return out
}

// writtenAt returns the modification time of a file; the zero value if there is none.
func writtenAt(path string) (t syscall.Timespec, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	return info.Sys().(*syscall.Stat_t).Mtim, nil
}
