package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

const (
	// directEvery is the interval of requests to each API server without the VIP.
	directEvery = 250 * time.Millisecond
	// readyEvery is the interval of requests for the nodes that are not ready.
	readyEvery = time.Second
	timeout    = 2 * time.Second
)

// load holds the clients that use the cluster by its VIPs from the client's host, and the
// watches.
type load struct {
	c      *cluster
	since  time.Time
	vip    netip.Addr
	cancel context.CancelFunc
	done   sync.WaitGroup

	api, web *probe.Probe            // new connections to both VIPs
	direct   []*probe.Probe          // to each API server
	servers  []*kubernetes.Clientset // of each API server
	holders  *watch.Watch
	unready  map[string]bool // nodes that were not ready at some time
}

// startLoad begins to use the cluster by this VIP.
func (c *cluster) startLoad(vip netip.Addr) *load {
	c.t.Helper()
	l := &load{c: c, since: time.Now(), vip: vip, unready: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	start := func(url string, every time.Duration) *probe.Probe {
		p, err := probe.Start(probe.Config{
			Target: probe.Target{URL: url, Dial: c.client.DialContext}, Every: every, Since: l.since,
		})
		c.must(err)
		return p
	}
	l.api = start("https://"+l.vip.String()+":6443/livez", probe.LiveEvery)
	if c.routed {
		l.web = start("http://"+ingressVIP.String()+"/", probe.LiveEvery)
	}
	var nodes []*netns.Node
	for _, n := range append(c.nodes(), c.bootstrap) {
		if n == nil {
			continue
		}
		nodes = append(nodes, n.Node.Machine.Host.Node)
		if n.control[apiServer] != nil {
			l.direct = append(l.direct, start("https://"+n.addr.String()+":6443/readyz", directEvery))
			l.servers = append(l.servers, c.clients(n.addr, timeout))
		}
	}
	var err error
	l.holders, err = watch.Start(watch.Config{Network: c.network, Nodes: nodes, VIPs: []netip.Addr{vip, ingressVIP}, Since: l.since})
	c.must(err)
	l.done.Go(func() { l.watchNodes(ctx) })
	return l
}

// watchNodes asks any API server that answers for nodes that are not ready, and not through the VIP.
func (l *load) watchNodes(ctx context.Context) {
	for ctx.Err() == nil {
		for _, s := range l.servers {
			nodes, err := s.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, n := range nodes.Items {
				if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
					return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
				}) {
					l.unready[n.Name] = true
				}
			}
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyEvery):
		}
	}
}

// get reads an answer to its end.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// answers waits until the client has had answers from the VIP for a second.
func (l *load) answers() {
	l.c.t.Helper()
	l.c.patiently(func(ctx context.Context) error { return l.api.Await(ctx, 100) })
}

// end ends the load and returns its results.
func (l *load) end() seen {
	l.c.t.Helper()
	l.cancel()
	s := seen{API: figures(l.api.End())}
	if l.web != nil {
		s.Web = figures(l.web.End())
	}
	var alive []time.Duration
	for _, p := range l.direct {
		for _, r := range p.End().Requests {
			if r.Err == "" {
				alive = append(alive, r.Sent)
			}
		}
	}
	slices.Sort(alive)
	for i := 1; i < len(alive); i++ {
		s.NoServer = max(s.NoServer, alive[i]-alive[i-1])
	}
	timeline, err := l.holders.End()
	testkit.Check(l.c.t, err)
	s.Holders, s.Two = timeline.Holders(l.vip, crossing), timeline.SplitBrain(crossing)
	l.done.Wait()
	s.Unready = slices.Sorted(maps.Keys(l.unready))
	return s
}

func figures(r probe.Result) probed {
	return probed{r.Outage(), r.Lost(), len(r.Requests)}
}

// crossing is how long two nodes may both have a VIP during a failover.
const crossing = 10 * time.Millisecond
