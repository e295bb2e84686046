package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Check checks a target and returns a report with what is wrong. It takes no longer than a few
// times t.Timeout.
func Check(ctx context.Context, t Target) *Report {
	t.ServerName = cmp.Or(t.ServerName, t.Host)
	if t.Now == nil {
		t.Now = time.Now
	}
	r := &Report{Host: t.Host, Port: t.Port, ServerName: t.ServerName, Endpoints: []Endpoint{}}
	d, finding := t.resolve(ctx)
	r.DNS = d
	if finding != nil {
		r.add(*finding)
		return r.finish()
	}
	r.Endpoints = make([]Endpoint, len(d.Addresses))
	findings := make([][]Finding, len(d.Addresses))
	var group sync.WaitGroup
	for i, a := range d.Addresses {
		group.Go(func() {
			v := visit{Target: &t, Endpoint: Endpoint{Address: netip.AddrPortFrom(a, t.Port)}}
			v.run(ctx)
			r.Endpoints[i], findings[i] = v.Endpoint, v.findings
		})
	}
	group.Wait()
	for _, f := range findings {
		r.add(f...)
	}
	return r.finish()
}

type visit struct {
	*Target
	Endpoint
	findings []Finding
}

func (v *visit) find(code Code, what, next string) {
	v.findings = append(v.findings, Finding{Code: code, Address: v.Address.String(), What: what, Next: next})
}

func (v *visit) run(ctx context.Context) {
	conn := v.connect(ctx)
	if conn == nil {
		return
	}
	defer conn.Close()
	if secure := v.handshake(ctx, conn); secure != nil {
		v.checkCertificate(secure.ConnectionState().PeerCertificates)
		v.askReady(ctx, secure)
	}
}

// With a Service of MetalLB, nodes refuse connections if its endpoints have no port with its
// port's name, and do not answer for the address without endpoints (seed 000; lab/e2e/metallb
// shows both).
const (
	refusedNext = "nothing listens behind the address. By MetalLB: 'oc describe service' of its Service; if Endpoints is empty, the port of the EndpointSlice has another name than the Service's " +
		"('vipgen metallb' gives both the same). By keepalived: whether HAProxy and kube-apiserver run on the node that has the address"
	silentNext = "no host answers for the address, or a firewall drops the packets. By MetalLB: events of its Service ('oc describe service') name the node that announces it; none: no IPAddressPool, no advertisement, " +
		"or no endpoint that is ready (an EndpointSlice without the label kubernetes.io/service-name belongs to no Service). " +
		"By keepalived: 'ip address' on the control-plane nodes. In one network, 'ip neighbour' of this machine shows whether a host answers"
)

// connect opens a connection, or adds a finding.
func (v *visit) connect(ctx context.Context) net.Conn {
	start := time.Now()
	conn, err := (&net.Dialer{Timeout: v.Timeout}).DialContext(ctx, "tcp", v.Address.String())
	switch {
	case err == nil:
		v.Connected, v.ConnectMS = true, time.Since(start).Milliseconds()
		return conn
	case errors.Is(err, syscall.ECONNREFUSED):
		v.find(codeRefused, fmt.Sprintf("%s refuses connections", v.Address), refusedNext)
	case timedOut(err):
		v.find(codeNoAnswer, fmt.Sprintf("%s does not answer within %v", v.Address, v.Timeout), silentNext)
	default:
		v.find(codeUnreachable, fmt.Sprintf("%s cannot be reached: %v", v.Address, plain(err)), silentNext)
	}
	return nil
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// plain removes the parts of an error that the report has anyway.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}
