// Package liveness serves a job's liveness over a unix socket. A stopped process, or one with
// stuck loops, keeps its locks, and its daemon runs as before: only an answer proves that it
// works.
package liveness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// socket is the name of a job's socket, in the directory of that job.
const socket = "alive"

const replyTimeout = time.Second

// Answer serves the state of a job's loops, in the directory of that job, until ctx ends: an
// empty answer means that none is stuck. Errors are logged: a job does not depend on its probe,
// which will fail.
func Answer(ctx context.Context, dir string, stuck func() error, log *slog.Logger) {
	Serve(ctx, dir, socket, func() string {
		if err := stuck(); err != nil {
			return err.Error()
		}
		return ""
	}, log)
}

// Serve writes an answer to each client of a socket in the directory of a job, one after the
// other, until ctx ends.
func Serve(ctx context.Context, dir, socket string, answer func() string, log *slog.Logger) {
	l, err := listen(dir, socket)
	if err != nil {
		log.Error("liveness probes get no answer", "error", err)
		return
	}
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				log.Error("liveness probes get no answer any more", "error", err)
			}
			return
		}
		text := answer()
		c.SetDeadline(time.Now().Add(replyTimeout))
		io.WriteString(c, text)
		c.Close()
	}
}

// listen creates the socket under another name first: that of an earlier process is replaced in
// one step, and not removed by it when it ends.
func listen(dir, socket string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	fresh := "." + socket
	if err := os.Remove(filepath.Join(dir, fresh)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", address(d, fresh))
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(filepath.Join(dir, fresh), filepath.Join(dir, socket)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Ask returns nil if the job with that name and directory answers before ctx ends, without a
// stuck loop.
func Ask(ctx context.Context, dir, name string) error {
	d, err := open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the %s job does not run", name)
	}
	if err != nil {
		return err
	}
	defer d.Close()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", address(d, socket).Name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("the %s job does not run", name)
	}
	var words []byte
	if err == nil {
		defer context.AfterFunc(ctx, func() { c.Close() })()
		defer c.Close()
		words, err = io.ReadAll(c)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the %s job does not answer: %w", name, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("asking the %s job: %w", name, err)
	case len(words) > 0:
		return errors.New(string(words))
	}
	return nil
}

func open(dir string) (*os.File, error) { return os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0) }

// address returns the address of a socket in a directory whose path may be longer than a
// socket's may (108 bytes, unix(7)).
func address(dir *os.File, name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)}
}
