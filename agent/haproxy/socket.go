package haproxy

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/lazy"
)

const socketTimeout = 5 * time.Second

// Backends (templates/haproxy): ready API servers, and those that accept connections.
const (
	apiServers = "api-servers"
	listening  = "listening"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 4 << 20

// ask sends a command to one of HAProxy's sockets and returns the answer. The master
// closes its socket without an answer when it reloads.
func ask(ctx context.Context, socket, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return "", err
	}
	// Otherwise the master waits for another command.
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	return string(answer), err
}

// processes is the state of the master and its current worker.
type processes struct {
	reloads, failed int
	worker          int // process ID, 0 for none
}

// relativePID is an additional column of HAProxy before 2.5.
const relativePID = "<relative PID>"

var (
	masterLine = lazy.Regexp(`(?m)^\d+ +master +(\d+)(?: \[failed: (\d+)\])?`)
	oldMaster  = lazy.Regexp(`(?m)^\d+ +master +\d+ +(\d+)()`)
	workerLine = lazy.Regexp(`(?m)^# workers\n(\d+) +worker `)
)

func parseProcesses(text string) (p processes, err error) {
	line := masterLine()
	if strings.Contains(text, relativePID) {
		line = oldMaster()
	}
	master := line.FindStringSubmatch(text)
	if master == nil {
		return p, fmt.Errorf("the master says %q", text)
	}
	p.reloads, _ = strconv.Atoi(master[1])
	p.failed, _ = strconv.Atoi(master[2])
	if worker := workerLine().FindStringSubmatch(text); worker != nil {
		p.worker, _ = strconv.Atoi(worker[1])
	}
	return p, nil
}

// master is HAProxy's master process, by its socket.
type master struct{ socket string }

func (m master) processes(ctx context.Context) (processes, error) {
	text, err := ask(ctx, m.socket, "show proc")
	if err != nil {
		return processes{}, err
	}
	return parseProcesses(text)
}

// errRefused reports that HAProxy kept the previous configuration.
var errRefused = errors.New("HAProxy does not start a worker with it")

const (
	retryPause = 20 * time.Millisecond
	// lost is when a reload request counts as lost: one that arrives while the master
	// re-executes itself after a reload.
	lostAfter = 5 * time.Second
)

// reload makes a new worker take over the listening sockets, and returns its process ID
// once it serves. Signals would be lost while the master re-executes itself.
func (m master) reload(ctx context.Context) (worker int, err error) {
	before, err := m.await(ctx, func(p processes) bool { return p.worker != 0 })
	if err != nil {
		return 0, err
	}
	for {
		if err := m.request(ctx); err != nil {
			return 0, err
		}
		wait, cancel := context.WithTimeout(ctx, lostAfter)
		after, err := m.await(wait, func(p processes) bool { return p.reloads != before.reloads })
		cancel()
		switch {
		case err == nil && after.failed > before.failed:
			return 0, errRefused
		case err == nil:
			return m.serves(ctx, before.worker)
		case ctx.Err() != nil:
			return 0, err
		}
	}
}

// request requests a reload, again while nothing listens.
func (m master) request(ctx context.Context) error {
	for {
		answer, err := ask(ctx, m.socket, "reload")
		var op *net.OpError
		switch {
		case strings.HasPrefix(answer, "Success=0"): // HAProxy 2.7 and later
			return fmt.Errorf("%w: %.500s", errRefused, answer)
		case err == nil, errors.As(err, &op) && op.Op != "dial":
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// serves waits until a worker other than the old one answers.
func (m master) serves(ctx context.Context, old int) (worker int, err error) {
	_, err = m.await(ctx, func(p processes) bool {
		if p.worker == 0 || p.worker == old {
			return false
		}
		info, err := ask(ctx, m.socket, fmt.Sprintf("@!%d show info", p.worker))
		worker = p.worker
		return err == nil && strings.Contains(info, fmt.Sprintf("\nPid: %d\n", p.worker))
	})
	return worker, err
}

// await polls the processes until ok accepts them.
func (m master) await(ctx context.Context, ok func(processes) bool) (processes, error) {
	for {
		p, err := m.processes(ctx)
		if err == nil && ok(p) {
			return p, nil
		}
		if late := pause(ctx); late != nil {
			return p, errors.Join(late, err)
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting for HAProxy's master: %w", context.Cause(ctx))
	case <-time.After(retryPause):
		return nil
	}
}

// server is a server of a backend in HAProxy's statistics.
type server struct{ backend, name, address, status, check string }

func (s server) up() bool { return strings.HasPrefix(s.status, "UP") }

// parseServers parses the answer to "show stat".
func parseServers(text string) (out []server, err error) {
	rows, err := csv.NewReader(bytes.NewReader([]byte(strings.TrimPrefix(text, "# ")))).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("HAProxy's statistics: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, name := range []string{"pxname", "svname", "status", "addr", "check_status"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("HAProxy's statistics have no %q", name)
		}
	}
	for _, row := range rows[1:] {
		// Frontends and sums have no address.
		if address := row[column["addr"]]; address != "" {
			out = append(out, server{row[column["pxname"]], row[column["svname"]], address, row[column["status"]], strings.TrimPrefix(row[column["check_status"]], "* ")})
		}
	}
	return out, nil
}

// unchecked is the result of a server's check before the first one.
const unchecked = "INI"

// backends returns the API servers to publish.
func backends(servers []server) (out []state.Backend) {
	for _, s := range servers {
		if s.backend == apiServers {
			out = append(out, state.Backend{Name: s.name, Address: s.address, Up: s.up()})
		}
	}
	return out
}

// ready reports whether a check found an API server ready. Before its first check a
// server counts as up.
func ready(servers []server) bool {
	return slices.ContainsFunc(servers, func(s server) bool {
		return s.backend == apiServers && s.up() && s.check != unchecked
	})
}
