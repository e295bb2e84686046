package chaos

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/events"
)

// readOnly makes the directory of a daemon's configuration read-only in its container.
func (a *act) readOnly(ctx context.Context) (undo, error) {
	n, j := a.node(), jobs[a.fault.What]
	if len(pids(n, j, j.program())) == 0 {
		return nil, errNoEffect
	}
	restore, err := n.ReadOnly(ctx, j.pod, j.container, "/etc/"+a.fault.What)
	if err != nil {
		return nil, errors.Join(errNoEffect, err) // it ends, and starts with other mounts
	}
	return func(context.Context) error {
		_ = restore() // fails if the container has ended
		return nil
	}, nil
}

// fullRun leaves a node's /run without space.
func (a *act) fullRun(context.Context) (undo, error) {
	restore, err := a.node().FillRun()
	return func(context.Context) error { return restore() }, err
}

// noProcesses keeps a container from starting processes and threads.
func (a *act) noProcesses(ctx context.Context) (undo, error) {
	n, j := a.node(), jobs[a.fault.What]
	if len(pids(n, j, j.program())) == 0 {
		return nil, errNoEffect
	}
	lift, err := n.NoProcesses(ctx, j.pod, j.container)
	if lift == nil || err != nil {
		return nil, errors.Join(errNoEffect, err)
	}
	m := a.begin(n, condition{Effect: effectUnsure})
	return func(ctx context.Context) error {
		return a.recover(ctx, m, "", a.afterStart(),
			func() error { lift(); return nil },
			func() error { return a.awaitRestart(ctx, n, j, nil) })
	}, nil
}

// Variants of oddEvents: what stands in place of the file.
const (
	eventsFIFO  = "fifo"
	eventsLarge = "large"
)

// oddEvents replaces a node's record of events by something that no agent could have written.
func (a *act) oddEvents(context.Context) (undo, error) {
	path := a.node().Path(filepath.Join("/etc/keepalived", events.FileName))
	odd := path + ".odd" // the agent may make the file anew at any moment
	if _, err := os.Lstat(path); err != nil {
		return nil, errors.Join(errNoEffect, err)
	}
	if a.fault.What == eventsLarge {
		return nil, errors.Join(os.WriteFile(odd, nil, 0o644), os.Truncate(odd, 1<<30), os.Rename(odd, path))
	}
	return func(context.Context) error {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().Type() == fs.ModeNamedPipe {
			return os.Remove(path)
		}
		return nil
	}, errors.Join(unix.Mkfifo(odd, 0o644), os.Rename(odd, path))
}
