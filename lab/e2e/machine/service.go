package machine

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Service is a program that runs on a machine until it is powered off.
type Service struct {
	run  *process.Process // nsenter
	name string
	pid  int
}

// Start starts a program on the machine, under its base name. Its output is appended to a file of
// that name in the machine's directory, next to the root.
func (m *Machine) Start(name string, args ...string) (*Service, error) {
	s := &Service{name: filepath.Base(name) + " on " + m.Name}
	var err error
	if s.run, err = process.Start(s.name, m.Command(context.Background(), name, args...), m.log(name)); err != nil {
		return nil, err
	}
	// nsenter has the program as its only child.
	for !s.run.Ended() {
		if s.pid, err = host.Child(s.run.PID()); err == nil {
			return s, nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil, s.ended()
}

func (m *Machine) log(name string) string {
	return filepath.Join(m.Dir(), filepath.Base(name)+".log")
}

// signal sends a signal to the program, unless it has ended.
func (s *Service) signal(signal syscall.Signal) {
	if !s.run.Ended() {
		syscall.Kill(s.pid, signal)
	}
}

// Stop sends SIGTERM to the program and returns when it has ended. If ctx ends before that, it
// returns an error, and the program continues.
func (s *Service) Stop(ctx context.Context) error {
	s.signal(syscall.SIGTERM)
	select {
	case <-s.run.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has not ended after SIGTERM: %w", s.name, ctx.Err())
	}
}

// done returns a channel that is closed when the program has ended.
func (s *Service) done() <-chan struct{} { return s.run.Done() }

// output returns the output of the program.
func (s *Service) output() string { return s.run.Output() }

// ended returns the error for a program that ended unexpectedly.
func (s *Service) ended() error {
	out := s.output()
	return fmt.Errorf("%s has ended:\n%s", s.name, out[max(0, len(out)-2000):])
}

// await retries until success. It returns the last error when the program or ctx ends.
func (s *Service) await(ctx context.Context, what string, try func(context.Context) error) error {
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.done():
			return s.ended()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, ctx.Err(), err)
		}
	}
}
