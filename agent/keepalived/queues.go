package keepalived

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/atomicfile"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// In unicast mode keepalived sends the adverts to all peers of a family through
// one socket. Those to a peer on the link that is dead wait in the kernel until it
// gives up asking for the peer's link address, and count against the buffer of
// that socket while they wait. With many dead peers the buffer is full, then
// living peers get no adverts either, and take the VIP over. So there is a bound
// on what waits for a neighbour (unres_qlen_bytes of the interface).
const (
	// unresolvedFor is how long the kernel asks, in seconds: mcast_solicit times
	// retrans_time_ms, as they are by default.
	unresolvedFor = 3
	// advertBytes is what an advert takes up in the buffer, at most; 832 was
	// measured. One waits for every neighbour whatever the bound is.
	advertBytes = 1024
)

// queue is a bound on an interface, for one family.
type queue struct {
	Interface string `json:"interface"`
	IPv6      bool   `json:"ipv6,omitempty"`
	// Bytes may wait for each neighbour.
	Bytes uint32 `json:"bytes"`
}

// bounds are those that a configuration needs, where the socket's buffer has that
// many bytes. Half of the buffer is for dead peers. Few enough peers to fit need
// none: other traffic waits for its neighbours too.
func bounds(instances []keepalived.Instance, buffer int) (out []queue) {
	type load struct {
		waiting int
		peers   map[netip.Addr]bool
	}
	loads := map[queue]*load{}
	for _, i := range instances {
		interval := i.Interval().Seconds()
		if interval <= 0 {
			continue
		}
		q := queue{Interface: i.Interface, IPv6: i.VIP.Addr().Is6()}
		l := loads[q]
		if l == nil {
			l = &load{peers: map[netip.Addr]bool{}}
			loads[q] = l
		}
		l.waiting += len(i.Peers) * (1 + int(unresolvedFor/interval)) * advertBytes
		for _, p := range i.Peers {
			l.peers[p] = true
		}
	}
	for q, l := range loads {
		if l.waiting > buffer/2 {
			q.Bytes = uint32(max(buffer/2/len(l.peers), advertBytes))
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b queue) int {
		return cmp.Or(cmp.Compare(a.Interface, b.Interface), cmp.Compare(strconv.FormatBool(a.IPv6), strconv.FormatBool(b.IPv6)))
	})
	return out
}

// queues are the bounds that are in force.
type queues struct {
	// file is where it stands what they were before, for an agent that did not
	// get to put it back. It lasts as long as the bounds do: until a reboot.
	file    string
	failing logging.Transitions
}

// bound makes the bounds those that are wanted, where they are tighter than what
// there was, and puts the others back.
func (q *queues) bound(wanted []queue) error {
	before, unknown := q.earlier()
	if len(wanted)+len(before) == 0 {
		return unknown
	}
	now, err := readQueues()
	if err != nil {
		return err
	}
	var keep, set []queue
	for _, w := range wanted {
		was, ok := find(before, w)
		if !ok {
			was, ok = find(now, w)
		}
		if ok && was.Bytes > w.Bytes { // else it is bound well enough, or gone
			keep, set = append(keep, was), append(set, w)
		}
	}
	for _, b := range before {
		if _, ok := find(keep, b); !ok {
			set = append(set, b)
		}
	}
	errs := []error{unknown, q.remember(keep)}
	for _, s := range set {
		if is, ok := find(now, s); ok && is != s {
			errs = append(errs, setQueue(s))
		}
	}
	return errors.Join(errs...)
}

// find finds the bound of the same queues.
func find(list []queue, q queue) (queue, bool) {
	i := slices.IndexFunc(list, func(o queue) bool { return o.Interface == q.Interface && o.IPv6 == q.IPv6 })
	if i < 0 {
		return q, false
	}
	return list[i], true
}

// earlier is what was in force before.
func (q *queues) earlier() (list []queue, err error) {
	data, err := os.ReadFile(q.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil { // of half a list nothing is known
		return nil, fmt.Errorf("what the queues of neighbours were before: %w", err)
	}
	return list, nil
}

func (q *queues) remember(list []queue) error {
	if len(list) == 0 {
		_, err := atomicfile.Remove(q.file)
		return err
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(q.file, append(data, '\n'), 0o644)
	return err
}

// sendBuffer is what sockets like keepalived's get, in bytes. It asks one, since
// net.core.wmem_default is not shown in every network namespace.
func sendBuffer() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
}
