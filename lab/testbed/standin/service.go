// Package standin stands in for the services of a cluster that are OpenShift's
// own, or the site's, and that vipgen only asks and passes on to: machine config
// servers, routers and a name server. They answer what a real one would, and
// nothing beyond that.
package standin

import (
	"errors"
	"sync"
)

// Service is a service of a node, in this process.
type Service struct {
	open func() (kill func(), err error)

	mu   sync.Mutex
	kill func() // nil while it does not run
}

func start(open func() (func(), error)) (*Service, error) {
	s := &Service{open: open}
	if err := s.Start(); err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts a service that was stopped.
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

// Stop ends the service at once, with its connections, as if its process was
// killed. It does nothing if the service does not run.
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

// Running says whether it was started and not stopped.
func (s *Service) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill != nil
}
