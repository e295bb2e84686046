package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress is a progress bar on a terminal, shown after a delay.
type progress struct {
	out   io.Writer
	what  string
	total int

	mu    sync.Mutex
	done  int
	shown bool
	stop  chan struct{}
	ended sync.WaitGroup
}

// The delay before a bar is shown, and its refresh interval.
const (
	patience         = 2 * time.Second
	progressInterval = 200 * time.Millisecond
)

// startProgress shows a bar after patience. what is counted, such as "clusters".
func startProgress(out io.Writer, what string, total int, patience, interval time.Duration) *progress {
	p := &progress{out: out, what: what, total: total, stop: make(chan struct{})}
	p.ended.Go(func() {
		wait := time.NewTimer(patience)
		defer wait.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-wait.C:
				p.show()
				wait.Reset(interval)
			}
		}
	})
	return p
}

func (p *progress) step() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.done++
	p.mu.Unlock()
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	const width = 30
	full := width * p.done / max(p.total, 1)
	fmt.Fprintf(p.out, "\r[%s%s] %d of %d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), p.done, p.total, p.what)
}

func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	p.ended.Wait()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
