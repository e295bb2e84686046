package keepalived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// probeDaemon returns nil if the job is alive and keepalived answers or is not wanted.
// keepalived answers by dumping its state to a file from its VRRP process's main loop at
// SIGUSR1. The probe runs in the container of the job, which shares its process IDs, and
// returns soon after ctx ends.
func probeDaemon(ctx context.Context, dir *state.Dir, root string) error {
	s, err := state.Read[state.Keepalived](dir)
	switch {
	case err != nil:
		return err
	case s == nil:
		return nil // the job answered, but published no state (hard case 54)
	}
	return askDaemon(ctx, s, root)
}

// wroteState reports whether a log line of keepalived only announces a state dump, which
// each liveness probe requests.
func wroteState(line []byte) bool {
	return bytes.Contains(line, []byte("Printing VRRP data for process(")) || bytes.Contains(line, []byte("Printing parent data for process("))
}

// askDaemon returns nil if keepalived answers, or is not wanted.
func askDaemon(ctx context.Context, s *state.Keepalived, root string) error {
	switch _, err := os.Stat(filepath.Join(root, vrrpPID)); {
	case !s.Wanted:
		return nil
	case s.PID == 0:
		return errors.New("keepalived does not run")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("keepalived is still starting") // a signal now would kill it
	}
	dump := filepath.Join(root, dumpFile)
	before, err := writtenAt(dump)
	if err != nil {
		return err
	}
	if err := syscall.Kill(s.PID, syscall.SIGUSR1); err != nil {
		return fmt.Errorf("keepalived cannot be asked: %w", err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("keepalived does not answer: %w", context.Cause(ctx))
		case <-look.C:
		}
		if now, err := writtenAt(dump); err == nil && now != before {
			return nil
		}
	}
}
