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

// output reads what CoreDNS prints, hands it on, and knows from it when CoreDNS
// has started and what became of a reload: there is no other way to learn that.
type output struct {
	write *os.File // what CoreDNS has for standard output and error
	read  *os.File

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every word
	started bool
	reloads int
	failed  string // why the last reload failed
}

func newOutput() (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{read: r, write: w, changed: make(chan struct{})}, nil
}

// run hands lines on until Close.
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

// close ends run, whoever else still has the pipe.
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

// starting says that CoreDNS is about to be started anew.
func (o *output) starting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = false
}

// await waits until ok, which is called with the lock held.
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
			return fmt.Errorf("CoreDNS does not say that it is done: %w", context.Cause(ctx))
		case <-changed:
		}
	}
}

// reload calls ask when CoreDNS has started, and waits for what comes of it. A
// signal that comes before would end CoreDNS.
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
