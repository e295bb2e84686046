package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/arpnd"
)

// Report is the result of a check between this node and the peer.
type Report struct {
	Addresses []netip.Addr `json:"addresses"`
	Peer      netip.Addr   `json:"peer"`
	Checks    []Check      `json:"checks"`
}

func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Result == Fail })
}

// side is one of the two nodes, for one address.
type side struct {
	own netip.Addr
	mac net.HardwareAddr
	do  func(context.Context, request) (answer, error)
}

// Run checks the network between this node and a peer that serves, in up to checkFor.
func Run(ctx context.Context, o Options) (out *Report, err error) {
	n, err := newNode(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, checkFor, fmt.Errorf("the check took longer than %v", checkFor))
	defer cancel()
	peer, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer peer.conn.Close()
	defer context.AfterFunc(ctx, func() { peer.conn.Close() })()
	out = &Report{Addresses: o.Addresses, Peer: o.Peer, Checks: []Check{}}
	for _, t := range n.targets {
		r := &run{ctx: ctx, address: t.address, report: out}
		here, there := side{t.own, t.link.HardwareAddr, n.do}, side{do: peer.do}
		joined := r.do(there, request{Do: opJoin, Own: t.own})
		there.own, there.mac = joined.Own, joined.MAC
		r.do(here, request{Do: opJoin, Own: there.own})
		if r.all(here, there); r.err != nil {
			return nil, r.err
		}
	}
	return out, nil
}

// run checks one address.
type run struct {
	ctx     context.Context
	address netip.Addr
	report  *Report
	err     error // the first one; nothing is done after it
}

// do has a node execute a request.
func (r *run) do(s side, q request) (a answer) {
	if r.err != nil {
		return a
	}
	q.Protocol, q.Address = protocol, r.address
	if a, r.err = s.do(r.ctx, q); r.err != nil {
		r.err = fmt.Errorf("%s %v: %w", q.Do, r.address, r.err)
		if r.ctx.Err() != nil {
			r.err = context.Cause(r.ctx)
		}
	}
	return a
}

func (r *run) add(from, to side, c Check) {
	c.Address, c.From, c.To = r.address, from.own, to.own
	r.report.Checks = append(r.report.Checks, c)
}

// all runs the checks, and only the first one if the address is in use.
func (r *run) all(here, there side) {
	used := false
	for _, s := range []side{here, there} {
		found := r.do(s, request{Do: opSearch})
		r.add(s, side{}, unused(found.MACs, found.Others))
		used = used || len(found.MACs) > 0
	}
	if used || r.err != nil {
		return
	}
	ways := [][2]side{{here, there}, {there, here}}
	for _, way := range ways {
		for _, form := range arpnd.Forms(r.address.Is6()) {
			r.move(way[0], way[1], form)
		}
	}
	id := r.freeRouterID(here, there)
	for _, way := range ways {
		r.vrrp(way[0], way[1], id)
	}
}

// move moves the address from one node to the other one, which announces it in one form
// alone. With the first form, which keepalived sends, it also makes the checks that need a
// holder.
func (r *run) move(from, to side, form arpnd.Form) {
	// The network first learns the address at its previous holder.
	r.do(from, request{Do: opHold})
	r.do(from, request{Do: opTeach})
	r.do(to, request{Do: opResolve})
	r.do(from, request{Do: opRelease})
	r.do(to, request{Do: opHold})
	r.do(from, request{Do: opReset})
	r.do(from, request{Do: opSend})
	took := r.do(to, request{Do: opMove, Form: form}).Took
	received := r.do(from, request{Do: opCount, Form: form, Want: 1}).Count
	r.do(from, request{Do: opStop})
	r.add(from, to, moved(form, took, received))
	if form == arpnd.Forms(r.address.Is6())[0] {
		r.held(from, to, form)
	}
	r.do(to, request{Do: opRelease})
}

// held makes the checks that need a holder.
func (r *run) held(from, to side, form arpnd.Form) {
	r.add(from, to, resolved(r.do(from, request{Do: opResolve}).MACs, to.mac, from.mac))
	if r.address.Is6() {
		r.add(from, to, duplicate(r.do(from, request{Do: opProbe}).MACs, to.mac))
	}
	r.do(from, request{Do: opReset})
	r.do(to, request{Do: opSpeak})
	r.add(to, from, source(r.do(from, request{Do: opCount, Form: data, Want: spoken}).Count))
	r.do(from, request{Do: opReset})
	r.do(to, request{Do: opRepeat, Form: form})
	r.add(to, from, rate(r.do(from, request{Do: opCount, Form: form, Want: burst}).Count))
}

// vrrp sends advertisements from one node to the other one.
func (r *run) vrrp(from, to side, id uint8) {
	r.do(from, request{Do: opAdvertise, RouterID: id})
	multicast := r.do(to, request{Do: opAdverts, RouterID: id, Mode: modes[0]})
	unicast := r.do(to, request{Do: opAdverts, RouterID: id, Mode: modes[1]})
	r.add(from, to, advertised(modes[0], multicast, unicast))
	r.add(from, to, advertised(modes[1], unicast, multicast))
}

// modes holds the modes of listener.Router.
var modes = [2]string{"multicast", "unicast"}

// freeRouterID returns a virtual router ID that neither node has seen on the link.
func (r *run) freeRouterID(nodes ...side) uint8 {
	var taken []int
	for _, n := range nodes {
		taken = append(taken, r.do(n, request{Do: opRouters}).RouterIDs...)
	}
	id := 255
	for id > 1 && slices.Contains(taken, id) {
		id--
	}
	return uint8(id)
}
