package fabric

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/internal/arpnd"
)

const (
	protocol = 1 // version of the messages
	// serveFor bounds the wait for the other node, checkFor a whole check, and messageTime
	// a request with its work.
	serveFor    = 10 * time.Minute
	checkFor    = 3 * time.Minute
	messageTime = 15 * time.Second
	maxMessage  = 4096 // bytes
)

// operation names a request.
type operation string

const (
	opJoin      operation = "join"      // observe the link; answers the node's own address and MAC
	opSearch    operation = "search"    // ask for the address, which should be unused
	opHold      operation = "hold"      // add the address, without announcing it
	opTeach     operation = "teach"     // announce and use the address, so that switches learn it
	opRelease   operation = "release"   // remove the address
	opSend      operation = "send"      // send to the address until stop
	opStop      operation = "stop"      //
	opMove      operation = "move"      // announce the address until packets to it arrive
	opRepeat    operation = "repeat"    // announce the address many times
	opSpeak     operation = "speak"     // send from the address
	opReset     operation = "reset"     // forget what was received
	opCount     operation = "count"     // count what was received
	opResolve   operation = "resolve"   // ask for the address, as any host
	opProbe     operation = "probe"     // ask for the address, as a host that would use it
	opRouters   operation = "routers"   // list virtual router IDs
	opAdvertise operation = "advertise" // send VRRP
	opAdverts   operation = "adverts"   // count received VRRP
)

// request is a line of JSON from the driving node.
type request struct {
	Protocol int        `json:"protocol"`
	Do       operation  `json:"do"`
	Address  netip.Addr `json:"address"`
	Own      netip.Addr `json:"own,omitzero"` // of the sender: join
	Form     arpnd.Form `json:"form,omitempty"`
	Want     int        `json:"want,omitempty"`
	RouterID uint8      `json:"routerID,omitempty"`
	Mode     string     `json:"mode,omitempty"`
}

// answer is a line of JSON to the driving node.
type answer struct {
	Error     string             `json:"error,omitempty"`
	Own       netip.Addr         `json:"own,omitzero"`
	MAC       net.HardwareAddr   `json:"mac,omitempty"`
	MACs      []net.HardwareAddr `json:"macs,omitempty"`
	Others    []netip.Addr       `json:"others,omitempty"`
	Took      time.Duration      `json:"took,omitempty"` // negative: never
	Count     int                `json:"count,omitempty"`
	TTL       int                `json:"ttl,omitempty"`
	RouterIDs []int              `json:"routerIDs,omitempty"`
}

// node executes requests on this machine.
type node struct {
	targets  []target
	port     int
	stations map[netip.Addr]*station
}

func newNode(o Options) (*node, error) {
	targets, err := o.targets()
	return &node{targets, o.Port, map[netip.Addr]*station{}}, err
}

// close removes all that the check has set up.
func (n *node) close() error {
	var errs []error
	for _, s := range n.stations {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// do executes a request, in bounded time.
func (n *node) do(ctx context.Context, r request) (a answer, err error) {
	if r.Do == opJoin {
		return n.join(ctx, r)
	}
	s := n.stations[r.Address]
	if err := s.refuses(r); err != nil {
		return a, err
	}
	switch r.Do {
	case opSearch:
		a.MACs, a.Others, err = s.search(ctx)
		s.unused = err == nil && len(a.MACs) == 0
	case opHold:
		if err = s.release(); err == nil {
			err = s.hold(ctx)
		}
	case opTeach:
		for _, form := range arpnd.Forms(s.address.Is6()) {
			err = errors.Join(err, arpnd.Announce(s.link, s.address, form))
		}
		err = errors.Join(err, s.speak(ctx))
	case opRelease:
		err = s.release()
	case opSend:
		s.stop()
		err = s.send(ctx)
	case opStop:
		s.stop()
	case opMove:
		a.Took, err = s.announce(ctx, r.Form)
	case opRepeat:
		err = s.repeat(ctx, r.Form)
	case opSpeak:
		err = s.speak(ctx)
	case opReset:
		s.reset()
	case opCount:
		a.Count = s.counted(ctx, r.Form, r.Want)
	case opResolve:
		a.MACs, err = s.ask(ctx, s.own, s.address)
	case opProbe:
		a.MACs, err = s.ask(ctx, unspecified(s.address), s.address)
	case opRouters:
		a.RouterIDs = s.routerIDs()
	case opAdvertise:
		err = s.advertise(ctx, r.RouterID)
	case opAdverts:
		a.Count, a.TTL = s.advertised(ctx, r.RouterID, r.Mode)
	default:
		err = fmt.Errorf("unknown request %q", r.Do)
	}
	return a, err
}

// refuses returns why a station, nil for none, does not do what is asked: a peer cannot have
// a node hold an address that is in use, nor announce what it does not hold.
func (s *station) refuses(r request) error {
	switch {
	case s == nil:
		return fmt.Errorf("%v was not joined", r.Address)
	case r.Do == opHold && !s.unused:
		return fmt.Errorf("%v was not searched for, or is in use", r.Address)
	case s.held == nil && slices.Contains([]operation{opTeach, opMove, opRepeat, opSpeak}, r.Do):
		return fmt.Errorf("%v is not on this node", r.Address)
	case (r.Do == opMove || r.Do == opRepeat) && !slices.Contains(arpnd.Forms(s.address.Is6()), r.Form):
		return fmt.Errorf("%v cannot be announced by %q", r.Address, r.Form)
	}
	return nil
}

// join starts a station for one of the addresses that this node was given.
func (n *node) join(ctx context.Context, r request) (a answer, err error) {
	if r.Protocol != protocol {
		return a, errors.New("the nodes run different versions of vipgen-agent: run the same one")
	}
	for _, t := range n.targets {
		if t.address != r.Address {
			continue
		}
		if !t.subnet.Contains(r.Own) || r.Own == t.own {
			return a, fmt.Errorf("the other node's address %v is not another one of %v: both nodes must be in one subnet", r.Own, t.subnet)
		}
		if n.stations[r.Address] != nil {
			return a, fmt.Errorf("%v was joined before", r.Address)
		}
		s, err := newStation(ctx, t, r.Own, n.port)
		if err == nil {
			n.stations[r.Address] = s
		}
		return answer{Own: t.own, MAC: t.link.HardwareAddr}, err
	}
	return a, fmt.Errorf("the other node was not started with the address %v: start both with the same", r.Address)
}

// Serve waits for the peer's check and takes part in it until the peer ends it.
func Serve(ctx context.Context, o Options) (err error) {
	n, err := newNode(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, serveFor, fmt.Errorf("no check by %v within %v", o.Peer, serveFor))
	defer cancel()
	conn, err := accept(ctx, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel = context.WithTimeout(ctx, checkFor)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return n.serve(ctx, conn)
}

// accept returns the first connection of the peer. Those of other hosts are closed unread.
func accept(ctx context.Context, o Options) (net.Conn, error) {
	on, err := net.Listen("tcp", ":"+strconv.Itoa(o.Port))
	if err != nil {
		return nil, err
	}
	defer on.Close()
	defer context.AfterFunc(ctx, func() { on.Close() })()
	o.Log.Info("waiting for the peer's check", "peer", o.Peer, "port", o.Port)
	for {
		conn, err := on.Accept()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, fmt.Errorf("waiting for %v: %w", o.Peer, err)
		}
		if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && a.AddrPort().Addr().Unmap() == o.Peer {
			return conn, nil
		}
		conn.Close()
	}
}

// serve answers requests until the peer closes the connection.
func (n *node) serve(ctx context.Context, conn net.Conn) error {
	in := bufio.NewReaderSize(conn, maxMessage)
	for first := true; ; first = false {
		_ = conn.SetDeadline(time.Now().Add(messageTime))
		var r request
		if err := readLine(in, &r); err != nil {
			if ctx.Err() == nil && errors.Is(err, errEnded) && !first {
				return nil
			}
			return fmt.Errorf("reading the peer's request: %w", errors.Join(ctx.Err(), err))
		}
		a, err := n.do(ctx, r)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := writeLine(conn, a); err != nil {
			return fmt.Errorf("answering the peer: %w", err)
		}
	}
}

// remote is the other node.
type remote struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(ctx context.Context, o Options) (*remote, error) {
	to := netip.AddrPortFrom(o.Peer, uint16(o.Port)).String()
	conn, err := (&net.Dialer{Timeout: messageTime}).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, fmt.Errorf("%w: run 'vipgen-agent fabric-check --listen' there, with the address of this node as --peer", err)
	}
	return &remote{conn, bufio.NewReaderSize(conn, maxMessage)}, nil
}

func (p *remote) do(_ context.Context, r request) (a answer, err error) {
	_ = p.conn.SetDeadline(time.Now().Add(messageTime))
	if err = writeLine(p.conn, r); err == nil {
		err = readLine(p.in, &a)
	}
	switch {
	case err != nil:
		return a, fmt.Errorf("%w: see its output, and whether its --peer is this node's address", err)
	case a.Error != "":
		return a, fmt.Errorf("on the peer: %q", a.Error)
	}
	return a, nil
}

var errEnded = errors.New("the other node ended the connection")

func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	var network net.Error
	switch {
	case errors.As(err, &network) || errors.Is(err, bufio.ErrBufferFull):
		return err
	case err != nil:
		return errEnded
	}
	return json.Unmarshal(line, v)
}

func writeLine(conn net.Conn, v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	return err
}
