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

// Service is a program that runs on a machine until its power goes.
type Service struct {
	run  *process.Process // what entered the machine for it
	name string
	pid  int
}

// Start starts a program on the machine, under its base name. Its output is added to
// a file of that name in the machine's directory, beside its root.
func (m *Machine) Start(name string, args ...string) (*Service, error) {
	s := &Service{name: filepath.Base(name) + " on " + m.Name}
	var err error
	if s.run, err = process.Start(s.name, m.Command(context.Background(), name, args...), m.log(name)); err != nil {
		return nil, err
	}
	// What enters has the program as its only child.
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

// signal sends the program a signal, to no one if it has ended.
func (s *Service) signal(signal syscall.Signal) {
	if !s.run.Ended() {
		syscall.Kill(s.pid, signal)
	}
}

// Stop asks the program to end and returns when it has. When ctx ends before that,
// the program goes on, and the error says so.
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

// output is what the program has printed.
func (s *Service) output() string { return s.run.Output() }

// ended is the error of a program that has ended and should not have.
func (s *Service) ended() error {
	out := s.output()
	return fmt.Errorf("%s has ended:\n%s", s.name, out[max(0, len(out)-2000):])
}

// await tries something until it succeeds. It gives up when the program ends or ctx
// does, with what was wrong then.
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
