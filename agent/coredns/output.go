package coredns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// output forwards CoreDNS' output, and detects its start and the results of reloads,
// which nothing else shows.
type output struct {
	write *os.File // CoreDNS' standard output and error
	read  *os.File

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	started bool
	reloads int
	failed  string // error of the last reload
}

func newOutput() (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{read: r, write: w, changed: make(chan struct{})}, nil
}

func (o *output) run(to io.Writer) {
	lines := bufio.NewReader(o.read)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			fmt.Fprintln(to, strings.TrimRight(line, "\n"))
			o.line(line)
		}
		if err != nil {
			return
		}
	}
}

// close ends run, even if other processes hold the pipe.
func (o *output) close() {
	o.write.Close()
	o.read.Close()
}

func (o *output) line(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case strings.HasPrefix(text, "CoreDNS-"): // once all servers listen
		o.started = true
	case strings.Contains(text, "[INFO] Reloading complete"):
		o.reloads++
		o.failed = ""
	case strings.Contains(text, "[ERROR] SIGUSR1: "):
		o.reloads++
		_, o.failed, _ = strings.Cut(strings.TrimSpace(text), "[ERROR] SIGUSR1: ")
	default:
		return
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// starting resets the state before a start of CoreDNS.
func (o *output) starting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = false
}

// await waits until ok, called with the lock held, returns true.
func (o *output) await(ctx context.Context, ok func() bool) error {
	for {
		o.mu.Lock()
		done, changed := ok(), o.changed
		o.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("CoreDNS does not report the result: %w", context.Cause(ctx))
		case <-changed:
		}
	}
}

// reload calls ask once CoreDNS has started, and returns the result. An earlier signal
// would end CoreDNS.
func (o *output) reload(ctx context.Context, ask func() error) error {
	before := 0
	if err := o.await(ctx, func() bool { before = o.reloads; return o.started }); err != nil {
		return err
	}
	if err := ask(); err != nil {
		return err
	}
	failed := ""
	err := o.await(ctx, func() bool { failed = o.failed; return o.reloads > before })
	if err == nil && failed != "" {
		err = errors.New(failed)
	}
	return err
}
