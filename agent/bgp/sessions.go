package bgp

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/netdump"
)

// noRouter is why an interface has no session.
const noRouter = "no router has advertised itself: does it send router advertisements (RFC 4861)?"

// maxPassword is the longest password of TCP MD5 (tcp_md5sig of linux/tcp.h).
const maxPassword = 80

// runSpeaker starts the speaker if it does not run, and sets its sessions. Routers without
// a session are in s, and in the error.
func (j *Job) runSpeaker(s *state.BGP) error {
	spec, node := &j.facts.Cluster.Spec, j.facts.Node
	s.LocalASN = spec.BGP.LocalASN
	addresses := v1alpha1.OwnAddresses(node.Interfaces)
	o := SpeakerOptions{ASN: spec.BGP.LocalASN, RouterID: j.routerID(node.Name, addresses), Log: j.Log}
	for _, text := range spec.BGP.Communities {
		c, _ := v1alpha1.Community(text)
		o.Communities = append(o.Communities, c)
	}
	list := spec.BGP.PeersOf(node.Name, addresses)
	switch {
	case o.ASN != 0:
	case len(list) > 0:
		o.ASN = list[0].LocalASN
	default:
		o.ASN = j.options.ASN
	}
	peers, failed := j.peers(s, list)
	if len(list) == 0 {
		failed = fmt.Errorf("no router of spec.bgp.peers is for this node, which has %v: see their field nodes", addresses)
	}
	if j.speaker != nil && !slices.Equal(o.Communities, j.options.Communities) || j.options.ASN != o.ASN || j.options.RouterID != o.RouterID {
		j.stopSpeaker()
	}
	if j.speaker == nil {
		if err := j.startSpeaker(o, list); err != nil {
			return err
		}
	}
	return errors.Join(failed, j.speaker.SetPeers(peers))
}

func (j *Job) startSpeaker(o SpeakerOptions, routers []v1alpha1.BGPPeer) (err error) {
	if NewSpeaker == nil {
		return errors.New("this program has no BGP speaker: run vipgen-bgp, which the agent's image has next to vipgen-agent")
	}
	if why := j.otherSpeaker(routers); why != "" {
		return fmt.Errorf("another speaker runs on this node (%s), and routers would see two from one address: stop it, or hand it the routes with spec.announce: table", why)
	}
	if j.speaker, err = NewSpeaker(o); err != nil {
		j.speaker = nil
		return fmt.Errorf("start the BGP speaker: %w", err)
	}
	j.options = o
	if err := urgent(); err != nil {
		j.Log.Warn("cannot have CPU time before other processes: routers may take a busy node for dead", "error", err)
	}
	return nil
}

// urgent raises the priority of the threads of the process: BFD notices 150 ms without a
// packet. Later threads inherit it.
func urgent() error {
	tasks, err := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		id, _ := strconv.Atoi(t.Name())
		err = errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, id, -20))
	}
	return err
}

func (j *Job) stopSpeaker() {
	if j.speaker != nil {
		j.speaker.Stop()
		j.speaker = nil
	}
}

// peers returns the routers with their passwords, and those of interfaces with their addresses. Without
// either, they are left out.
func (j *Job) peers(s *state.BGP, list []v1alpha1.BGPPeer) (out []Peer, failed error) {
	j.unnumbered.Keep(lists.Map(list, func(p v1alpha1.BGPPeer) string { return p.Interface }))
	idle := func(p *v1alpha1.BGPPeer, why string) {
		s.Peers = append(s.Peers, state.BGPPeer{Address: p.Address, Interface: p.Interface, ASN: p.ASN, State: "idle", Problem: why})
	}
	for _, p := range list {
		if p.Interface != "" {
			router, err := j.unnumbered.Router(p.Interface, j.established(&p))
			switch {
			case err != nil:
				failed = errors.Join(failed, fmt.Errorf("no session with %s: %w", p.Name(), err))
				idle(&p, err.Error())
				continue
			case !router.IsValid():
				idle(&p, noRouter)
				continue
			}
			p.Address = router
		}
		peer := Peer{BGPPeer: p, LocalASN: j.facts.Cluster.Spec.BGP.Local(&p)}
		if p.PasswordFile != "" {
			word, err := password(filepath.Join(j.Root, p.PasswordFile))
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("no session with %s: %w", p.Name(), err))
				idle(&p, err.Error())
				continue
			}
			peer.Password = word
		}
		out = append(out, peer)
	}
	return out, failed
}

// established reports whether the session with a router was established at the end of the last turn.
func (j *Job) established(p *v1alpha1.BGPPeer) bool {
	s := j.last.Load()
	return s != nil && slices.ContainsFunc(s.Peers, func(now state.BGPPeer) bool { return now.Name() == p.Name() && now.Established() })
}

// password reads a password from the first line of a file.
func password(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read its password: %w", err)
	}
	word, _, _ := strings.Cut(string(data), "\n")
	if word = strings.TrimSuffix(word, "\r"); word == "" || len(word) > maxPassword {
		return "", fmt.Errorf("%s: a password of 1 to %d bytes expected in the first line", path, maxPassword)
	}
	return word, nil
}

// otherSpeaker returns what another BGP speaker of this node does; empty if none is seen. It is
// called while this job has no session.
func (j *Job) otherSpeaker(routers []v1alpha1.BGPPeer) string {
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(v1alpha1.BGPPort)), time.Second)
		if err == nil {
			conn.Close()
			return fmt.Sprintf("TCP port %d answers", v1alpha1.BGPPort)
		}
	}
	conn, err := net.ListenPacket("udp", fmt.Sprintf(":%d", v1alpha1.BFDPort))
	if err != nil {
		return fmt.Sprintf("UDP port %d of BFD: %v", v1alpha1.BFDPort, err)
	}
	conn.Close()
	open, err := netdump.Established()
	if err != nil {
		j.Log.Warn("cannot list connections: sessions of another speaker remain unnoticed", "error", err)
	}
	found := sessionsWith(open, anyOf(routers))
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("a session with %s", found[0].Peer.Addr())
}

// anyOf reports whether an address may be that of a router.
func anyOf(routers []v1alpha1.BGPPeer) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(routers, func(p v1alpha1.BGPPeer) bool {
			return p.Address == a || p.Interface != "" && a.IsLinkLocalUnicast() // of any interface
		})
	}
}

// sessionsWith returns the sessions with routers among all connections of the node, whose addresses
// have no zones. It shows those of speakers that do not listen, as MetalLB's FRR does not
// (bgpd -p 0), and those without BFD.
func sessionsWith(open []netdump.Connection, router func(netip.Addr) bool) []netdump.Connection {
	return lists.Filter(open, func(c netdump.Connection) bool {
		return (c.Own.Port() == v1alpha1.BGPPort || c.Peer.Port() == v1alpha1.BGPPort) && router(c.Peer.Addr())
	})
}

// laterSpeaker returns an error if another speaker has taken the session with a router, which has that as
// its problem then. The connections of the node are read only while a router has no session with this
// job: its own ones with that router do not last until the next turn.
func (j *Job) laterSpeaker(peers []state.BGPPeer, connections func() ([]netdump.Connection, error)) (failed error) {
	var without []netip.Addr
	for i := range peers {
		if p := &peers[i]; p.State == "idle" || p.State == "active" {
			without = append(without, p.Address.WithZone(""))
		}
	}
	before := j.others
	if j.others = nil; len(without) == 0 {
		return nil
	}
	open, _ := connections() // logged at the start
	j.others = sessionsWith(open, func(a netip.Addr) bool { return slices.Contains(without, a) })
	for _, c := range j.others {
		if !slices.Contains(before, c) {
			continue
		}
		router := slices.IndexFunc(peers, func(p state.BGPPeer) bool { return p.Address.WithZone("") == c.Peer.Addr() })
		peers[router].Problem = state.OtherSpeaker
		failed = errors.Join(failed, fmt.Errorf("%s with %s: stop it, or hand it the routes with spec.announce: table", state.OtherSpeaker, c.Peer.Addr()))
	}
	return failed
}

// routerID returns the BGP identifier of a node: its first IPv4 address, else one from its
// name (RFC 6286: it need only be unique in the AS). A node that loses its addresses for a moment,
// with its link, keeps the one that it has, because another one is another speaker.
func (j *Job) routerID(name string, addresses []netip.Addr) netip.Addr {
	if i := slices.IndexFunc(addresses, netip.Addr.Is4); i >= 0 {
		return addresses[i]
	}
	if j.speaker != nil {
		return j.options.RouterID
	}
	sum := crc32.ChecksumIEEE([]byte(name))
	return netip.AddrFrom4([4]byte{byte(sum>>24)%223 + 1, byte(sum >> 16), byte(sum >> 8), byte(sum)})
}
