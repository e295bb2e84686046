package haproxy

import (
	"context"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The agent reads the output of the master process of every generation: each reload returns the
// process ID of a new worker that serves.
func TestHardCase29Reload(t *testing.T) {
	daemon.EachGeneration(t, func(t *testing.T, g daemon.Generation) {
		lb := g.NewLoadBalancer(t, []byte("global\n    stats socket /run/haproxy.sock mode 600 level admin expose-fd listeners\n"+
			"defaults\n    mode tcp\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n"+
			"frontend api\n    bind 127.0.0.1:9445\n"), "/run/haproxy.sock")
		m := master{lb.MasterSocket()}
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		seen := map[int]bool{}
		for range 3 {
			worker, err := m.reload(ctx)
			testkit.Must(t, err)
			if now, err := m.processes(ctx); err != nil || now.worker != worker || now.failed != 0 || seen[worker] {
				t.Errorf("worker %d after a reload; seen before: %t; the master reports %+v, %v", worker, seen[worker], now, err)
			}
			seen[worker] = true
		}
	})
}
