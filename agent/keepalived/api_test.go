package keepalived

import (
	"context"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// kubeletDir holds the credentials of a node.
const kubeletDir = "/var/lib/kubelet"

// join replaces the node's API server and credentials.
func (n *node) join(a *daemon.API) {
	n.t.Helper()
	if n.api != nil {
		n.api.Kill()
	}
	n.api = a.Serve(n.Host, n.name)
}

// launch starts the node's API server again.
func (n *node) launch() {
	n.t.Helper()
	testkit.Must(n.t, n.api.Launch())
}

// unready makes the node's API server report its shutdown at /readyz and serve all else, until
// ready restarts it.
func (n *node) unready() {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.api.Stop(ctx)
	}()
	n.stopping = func() { end(); <-ended }
}

func (n *node) ready() {
	n.t.Helper()
	n.stopping()
	n.stopping = nil
	n.launch()
}
