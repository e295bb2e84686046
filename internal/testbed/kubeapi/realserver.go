package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

type realServer struct {
	plane  *real
	name   string
	node   *netns.Node // nil for this machine
	addr   netip.AddrPort
	dir    string
	target *target

	mu     sync.Mutex
	run    *process.Process // nil before the first launch
	frozen bool
}

// Launch implements Server.
func (s *realServer) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && !s.run.Ended() {
		return fmt.Errorf("the API server of %s runs already", s.name)
	}
	bind := s.addr.Addr().String()
	if s.node != nil {
		bind = "::" // a node's API server listens at every address
	}
	internal := internalName(s.plane.Domain)
	run, err := s.plane.start("kube-apiserver of "+s.name, command(s.node, s.plane.APIServer,
		"--bind-address", bind, "--secure-port", strconv.Itoa(int(s.addr.Port())),
		"--etcd-servers", s.plane.url,
		"--authorization-mode", "Node,RBAC",
		"--client-ca-file", s.in("ca.crt"),
		"--tls-cert-file", s.in("service.crt"), "--tls-private-key-file", s.in("service.key"),
		"--tls-sni-cert-key", s.in("localhost.crt")+","+s.in("localhost.key")+":localhost",
		"--tls-sni-cert-key", s.in("internal.crt")+","+s.in("internal.key")+":"+internal,
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", s.in(accounts+".crt"), "--service-account-signing-key-file", s.in(accounts+".key"),
		"--service-cluster-ip-range", s.plane.ServiceNetworks,
		"--enable-admission-plugins", "NodeRestriction",
		"--disable-admission-plugins", "ServiceAccount",
		// It must not announce a loopback address.
		"--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1",
	), s.in("kube-apiserver.log"))
	if err != nil {
		return err
	}
	s.run, s.frozen = run, false
	return nil
}

// current returns the running process, nil if there is none.
func (s *realServer) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.run.Ended() {
		return nil
	}
	return s.run
}

// Running implements Server.
func (s *realServer) Running() bool { return s.current() != nil }

func (s *realServer) usable() bool {
	run := s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	return run != nil && !s.frozen
}

// AwaitReady implements Server.
func (s *realServer) AwaitReady(ctx context.Context) error {
	return s.target.awaitReady(ctx, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.plane.etcd.Ended():
			return fmt.Errorf("etcd has ended:\n%s", last(s.plane.etcd.Output(), 20))
		case s.run == nil:
			return fmt.Errorf("the API server of %s was not started", s.name)
		case s.run.Ended():
			return fmt.Errorf("the API server of %s has ended:\n%s", s.name, last(s.run.Output(), 20))
		}
		return nil
	})
}

func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Kill implements Server.
func (s *realServer) Kill() error {
	if run := s.current(); run != nil {
		run.Kill()
	}
	s.target.close()
	return nil
}

// Stop implements Server. It takes a minute while there are watches.
func (s *realServer) Stop(ctx context.Context) error {
	run := s.current()
	if run == nil {
		return nil
	}
	err := run.Stop(ctx)
	return errors.Join(err, s.Kill())
}

// Freeze implements Server. It returns when the server is suspended.
func (s *realServer) Freeze() error {
	defer s.target.close()
	return s.pause(true, (*process.Process).Freeze)
}

// Thaw implements Server.
func (s *realServer) Thaw() error {
	return s.pause(false, func(run *process.Process) error { run.Signal(syscall.SIGCONT); return nil })
}

func (s *realServer) pause(frozen bool, pause func(*process.Process) error) error {
	run := s.current()
	if run == nil {
		return fmt.Errorf("the API server of %s does not run", s.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	return pause(run)
}

// SetAddr implements Server.
func (s *realServer) SetAddr(addr netip.Addr) { s.target.setAddr(addr) }
