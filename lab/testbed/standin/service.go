// Package standin implements stand-ins for services that are OpenShift's or the site's, and that
// vipgen only checks and forwards to: machine config servers, routers and a name server. They
// answer as the real ones do, and have no other behaviour.
package standin

import (
	"errors"
	"sync"
)

// Service is a service of a node, in this process.
type Service struct {
	open func() (kill func(), err error)

	mu   sync.Mutex
	kill func() // nil while stopped
}

func start(open func() (func(), error)) (*Service, error) {
	s := &Service{open: open}
	if err := s.Start(); err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts a stopped service.
func (s *Service) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kill != nil {
		return errors.New("the service runs already")
	}
	kill, err := s.open()
	if err != nil {
		return err
	}
	s.kill = kill
	return nil
}

// Stop ends the service at once, with its connections, as if its process was killed. It does
// nothing if the service does not run.
func (s *Service) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kill != nil {
		s.kill()
		s.kill = nil
	}
}

// Close is Stop, as an io.Closer.
func (s *Service) Close() error {
	s.Stop()
	return nil
}

// Running reports whether the service runs.
func (s *Service) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill != nil
}
