package neighbours

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// In unicast mode keepalived sends the adverts to all peers of a family through one
// socket. Adverts to a dead peer on the link wait in the kernel until it gives up
// resolving the peer's link address, and count against the send buffer of that socket.
// With many dead peers the buffer is full, living peers get no adverts either, and they
// acquire the VIP. So the bytes that wait for a neighbour are limited (unres_qlen_bytes
// of the interface).
const (
	// unresolvedFor is how long the kernel solicits a neighbour, in seconds:
	// mcast_solicit times retrans_time_ms, by default.
	unresolvedFor = 3
	// advertBytes bounds the size of an advert in the buffer; 832 was measured. One
	// packet waits for every neighbour, whatever the limit.
	advertBytes = 1024
)

// limit is the maximum of bytes that wait for each neighbour on an interface, for one
// family.
type limit struct {
	Interface string `json:"interface"`
	IPv6      bool   `json:"ipv6,omitempty"`
	Bytes     uint32 `json:"bytes"`
}

// limits returns the limits that instances need with a socket buffer of that many bytes.
// Half of the buffer is for dead peers. Peers that fit need no limit: other traffic waits
// for its neighbours too.
func limits(instances []keepalived.Instance, buffer int) (out []limit) {
	type load struct {
		waiting int
		peers   map[netip.Addr]bool
	}
	loads := map[limit]*load{}
	for _, i := range instances {
		interval := i.Interval().Seconds()
		if interval <= 0 {
			continue
		}
		key := limit{Interface: i.Interface, IPv6: i.VIP.Addr().Is6()}
		l := loads[key]
		if l == nil {
			l = &load{peers: map[netip.Addr]bool{}}
			loads[key] = l
		}
		l.waiting += len(i.Peers) * (1 + int(unresolvedFor/interval)) * advertBytes
		for _, p := range i.Peers {
			l.peers[p] = true
		}
	}
	for l, load := range loads {
		if load.waiting > buffer/2 {
			l.Bytes = uint32(max(buffer/2/len(load.peers), advertBytes))
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b limit) int {
		return cmp.Or(cmp.Compare(a.Interface, b.Interface), cmp.Compare(strconv.FormatBool(a.IPv6), strconv.FormatBool(b.IPv6)))
	})
	return out
}

// queues limits the queues for dead peers.
type queues struct {
	log *slog.Logger
	// file stores the previous limits, for an agent that ended without restoring them.
	// Like the limits, it lasts until a reboot.
	file    string
	failing logging.Transitions
}

// limit applies the limits that instances need, and restores all others.
func (q *queues) limit(instances []keepalived.Instance) {
	buffer, err := sendBuffer()
	if err == nil {
		err = q.apply(limits(instances, buffer))
	}
	q.failing.Error(q.log, err, "cannot limit neighbour queues: dead peers may delay advertisements to living ones", "neighbour queues limited again")
}

// apply sets the wanted limits where they are lower than the previous ones, and restores
// the others.
func (q *queues) apply(wanted []limit) error {
	before, unknown := q.previous()
	if len(wanted)+len(before) == 0 {
		return unknown
	}
	now, err := readLimits()
	if err != nil {
		return err
	}
	var keep, set []limit
	for _, w := range wanted {
		was, ok := find(before, w)
		if !ok {
			was, ok = find(now, w)
		}
		if ok && was.Bytes > w.Bytes { // else low enough, or the interface is gone
			keep, set = append(keep, was), append(set, w)
		}
	}
	for _, b := range before {
		if _, ok := find(keep, b); !ok {
			set = append(set, b)
		}
	}
	errs := []error{unknown, q.store(keep)}
	for _, s := range set {
		if is, ok := find(now, s); ok && is != s {
			errs = append(errs, s.set())
		}
	}
	return errors.Join(errs...)
}

func find(list []limit, l limit) (limit, bool) {
	i := slices.IndexFunc(list, func(o limit) bool { return o.Interface == l.Interface && o.IPv6 == l.IPv6 })
	if i < 0 {
		return l, false
	}
	return list[i], true
}

func (q *queues) previous() (list []limit, err error) {
	data, err := os.ReadFile(q.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil { // no partial list
		return nil, fmt.Errorf("reading the previous queue limits: %w", err)
	}
	return list, nil
}

func (q *queues) store(list []limit) error {
	if len(list) == 0 {
		_, err := fileio.Remove(q.file)
		return err
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = fileio.Write(q.file, append(data, '\n'), 0o644)
	return err
}

// sendBuffer returns the default send buffer in bytes, such as that of keepalived's socket. It
// opens a socket because net.core.wmem_default is not visible in every network namespace.
func sendBuffer() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
}
