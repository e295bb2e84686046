package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vipgen/vipgen/lab"
)

// listen opens the socket for requests. Only root can access the directory.
func (l *Lab) listen() error {
	path := l.place.socket()
	server, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	l.server = server
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	l.serving.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return // closed
			}
			l.serving.Go(func() { l.serve(conn) })
		}
	})
	return nil
}

const (
	// readFor is the time limit for reading a request, maxRequest its size limit in bytes.
	readFor    = 10 * time.Second
	maxRequest = 64 << 10
	// doFor is the time limit of a request: many times what a node needs to boot, or a pod to end,
	// on a busy machine.
	doFor = 5 * time.Minute
)

// serve answers a request. It completes the request even if the client has disconnected.
func (l *Lab) serve(conn net.Conn) {
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(readFor))
	defer context.AfterFunc(l.ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	var r Request
	var reply Reply
	decoder := json.NewDecoder(io.LimitReader(conn, maxRequest))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&r)
	if err == nil {
		ctx, cancel := context.WithTimeout(l.ctx, doFor)
		defer cancel()
		reply, err = l.do(ctx, r)
	}
	if err != nil {
		var mistake *inputError
		reply = Reply{Error: err.Error(), Input: errors.As(err, &mistake)}
	}
	json.NewEncoder(conn).Encode(reply) // the client may have gone
}

// do executes a request. Requests for changes are serialized.
func (l *Lab) do(ctx context.Context, r Request) (reply Reply, err error) {
	if r.Do == DoStatus {
		reply.Status, err = l.Status()
		return reply, err
	}
	l.doing.Lock()
	defer l.doing.Unlock()
	if ctx.Err() != nil {
		return reply, errors.New("the lab is being removed")
	}
	switch r.Do {
	case DoKill:
		reply.Done, err = l.kill(r.Nodes)
	case DoHeal:
		reply.Done, err = l.heal(ctx, r.Nodes)
	case DoPartition:
		reply.Done, err = l.partition(r.Nodes)
	case DoStop, DoStart:
		reply.Done, err = l.service(ctx, r)
	default:
		err = Mistake("a lab cannot %q", r.Do)
	}
	return reply, err
}

// one returns the only node of a request.
func (l *Lab) one(names []string) (*lab.Node, error) {
	if len(names) != 1 {
		return nil, Mistake("expected one node, found %d", len(names))
	}
	return l.node(names[0])
}

func (l *Lab) kill(names []string) (string, error) {
	n, err := l.one(names)
	if err != nil {
		return "", err
	}
	if !n.On() {
		return "", Mistake("%s is off already", n.Name)
	}
	l.event("%s loses its power", n.Name)
	l.watch.power(n.Name, false)
	return n.Name + " is off", n.Kill()
}

// partition separates machines from the others, or joins all if none is named.
func (l *Lab) partition(names []string) (string, error) {
	all := l.machines()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return "", Mistake("there is no machine %q; there is %s", name, strings.Join(all, ", "))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 || len(names) == len(all) {
		return "", Mistake("a partition has machines on both sides")
	}
	if err := l.cutOff(names); err != nil {
		return "", err
	}
	l.event("the network is cut: %s | the others", strings.Join(names, ", "))
	others := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(names, n) })
	return fmt.Sprintf("%s | %s", strings.Join(names, ", "), strings.Join(others, ", ")), nil
}

func (l *Lab) cutOff(names []string) error {
	if err := l.cluster.Partition(names...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = names
	return nil
}

// heal undoes the faults of a node, or all.
func (l *Lab) heal(ctx context.Context, names []string) (string, error) {
	nodes, said, cut := l.cluster.Nodes(), "all faults are undone", []string{}
	if len(names) > 0 {
		n, err := l.one(names)
		if err != nil {
			return "", err
		}
		nodes, said = []*lab.Node{n}, "all faults of "+n.Name+" are undone"
		cut = slices.DeleteFunc(slices.Clone(l.cut), func(name string) bool { return name == n.Name })
	}
	var errs []error
	if !slices.Equal(cut, l.cut) {
		errs = append(errs, l.cutOff(cut))
		l.event("the network is joined again%s", stillCut(cut))
	}
	healed := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { healed[i] = l.healNode(ctx, n) })
	}
	all.Wait()
	return said, errors.Join(append(errs, healed...)...)
}

func (l *Lab) healNode(ctx context.Context, n *lab.Node) error {
	switch stopped := n.Stopped(); {
	case !n.On():
		l.event("%s is switched on", n.Name)
	case len(stopped) > 0:
		l.event("%s: %s started", n.Name, strings.Join(stopped, ", "))
	}
	l.watch.power(n.Name, true)
	if err := n.Heal(ctx); err != nil {
		return fmt.Errorf("healing %s: %w", n.Name, err)
	}
	return nil
}

func stillCut(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " but for " + strings.Join(names, ", ")
}

func (l *Lab) service(ctx context.Context, r Request) (string, error) {
	n, err := l.one(r.Nodes)
	if err != nil {
		return "", err
	}
	stopping := r.Do == DoStop
	switch running := !slices.Contains(n.Stopped(), r.Service); {
	case !n.On():
		return "", Mistake("%s is off: power it on with 'vipgen lab heal %[1]s'", n.Name)
	case !slices.Contains(n.Services(), r.Service):
		return "", Mistake("%s has no service %q; it has %s", n.Name, r.Service, strings.Join(n.Services(), ", "))
	case stopping && !running:
		return "", Mistake("%s is stopped on %s already", r.Service, n.Name)
	case !stopping && running:
		return "", Mistake("%s runs on %s already", r.Service, n.Name)
	case stopping:
		l.event("%s: %s is stopped", n.Name, r.Service)
		return r.Service + " is stopped on " + n.Name, n.StopService(ctx, r.Service)
	default:
		l.event("%s: %s is started", n.Name, r.Service)
		return r.Service + " is started on " + n.Name, n.StartService(ctx, r.Service)
	}
}
