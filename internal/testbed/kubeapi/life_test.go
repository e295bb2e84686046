package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

const oneNode = "{apiVersion: v1, kind: Node, metadata: {name: worker-0}}"

// watching opens a watch and returns the error that ends it.
func (p *pair) watching(node int) <-chan error {
	p.t.Helper()
	resp, err := p.client(node, admin, administrators).Get("https://" + internalName(domain) + ":6443" + nodesPath + "?watch=true")
	p.must(err)
	ended := make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	return ended
}

// expectEnd waits for the end of a watch.
func expectEnd(t *testing.T, what string, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(testkit.Patience):
		t.Fatalf("%s continues", what)
		return nil
	}
}

func TestKill(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	ctx := t.Context()
	watch := p.watching(0)
	p.must(p.servers[0].Kill())
	if p.servers[0].Running() {
		t.Error("it runs after Kill")
	}
	if expectEnd(t, "the watch", watch) == nil {
		t.Error("the watch ended as if it was complete")
	}
	if conn, err := p.nodes[0].DialContext(ctx, "tcp", "192.0.2.10:6443"); err == nil {
		conn.Close()
		t.Error("a listener is left after Kill")
	}
	p.must(p.Create(ctx, nodesPath, []byte(oneNode))) // by the other
	p.must(p.servers[1].Kill())
	if err := p.Delete(ctx, nodesPath+"/worker-0"); !errors.Is(err, ErrNoServer) {
		t.Errorf("without servers: %v", err)
	}
	if err := p.servers[0].AwaitReady(ctx); err == nil {
		t.Error("a server that was killed is ready")
	}
	p.must(p.servers[0].Launch())
	if err := p.servers[0].Launch(); err == nil {
		t.Error("a server was started twice")
	}
	p.must(p.servers[0].AwaitReady(ctx))
	p.must(p.Delete(ctx, nodesPath+"/worker-0"))
}

// A frozen server accepts connections and answers nothing, over new connections and old ones.
func TestFreeze(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	ctx := t.Context()
	old := p.client(0, admin, administrators)
	if status, _, err := get(old, "/readyz"); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	watch := p.watching(0)
	p.must(p.servers[0].Freeze())
	if !p.servers[0].Running() {
		t.Error("a frozen server does not run")
	}
	answers := make(chan error, 2)
	for _, client := range []*http.Client{old, p.client(0, admin, administrators)} {
		go func() {
			status, body, err := get(client, "/readyz")
			if err == nil && (status != http.StatusOK || body != "ok") {
				err = errors.New(body)
			}
			answers <- err
		}()
	}
	for range 3 { // the kernel accepts them
		conn, err := p.nodes[0].DialContext(ctx, "tcp", "192.0.2.10:6443")
		p.must(err)
		defer conn.Close()
	}
	p.must(p.Create(ctx, nodesPath, []byte(oneNode))) // by the other
	select {
	case err := <-answers:
		t.Errorf("a frozen server answered: %v", err)
	case err := <-watch:
		t.Errorf("the watch ended: %v", err)
	case <-time.After(100 * time.Millisecond): // the time of many answers
	}
	p.must(p.servers[0].Thaw())
	for range 2 {
		testkit.Check(t, expectEnd(t, "a request", answers))
	}
	p.must(p.servers[0].Freeze())
	p.must(p.servers[0].Kill())
	expectEnd(t, "the watch", watch)
	if err := p.servers[0].Freeze(); err == nil {
		t.Error("froze a server that does not run")
	}
}

// A server that shuts down reports it at /readyz, and answers all other requests (hard case 8).
func TestStop(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	delay := make(chan time.Time)
	p.Plane.(*standIn).delay = func() <-chan time.Time { return delay }
	client, watch := p.client(0, admin, administrators), p.watching(0)
	ended := make(chan error, 1)
	go func() { ended <- p.servers[0].Stop(t.Context()) }()
	for said := false; !said; {
		status, body, err := get(client, "/readyz")
		p.must(err)
		said = status == http.StatusInternalServerError && strings.Contains(body, "[-]shutdown failed")
	}
	for path, want := range map[string]int{"/livez": 200, "/healthz": 200, nodesPath: 200} {
		if status, body, err := get(client, path); err != nil || status != want {
			t.Errorf("%s: %d %v %s", path, status, err, body)
		}
	}
	p.must(p.Create(t.Context(), nodesPath, []byte(oneNode)))
	close(delay)
	testkit.Check(t, expectEnd(t, "the watch", watch))
	p.must(expectEnd(t, "stopping", ended))
	if p.servers[0].Running() {
		t.Error("it runs after Stop")
	}

	p.Plane.(*standIn).delay = func() <-chan time.Time { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.servers[1].Stop(ctx); !errors.Is(err, context.Canceled) || p.servers[1].Running() {
		t.Errorf("stopping it without time: %v", err)
	}
	p.must(p.servers[1].Stop(t.Context())) // stopping again is harmless
}

// BenchmarkReadyz sends requests over new connections, like a client that measures.
func BenchmarkReadyz(b *testing.B) {
	p := newPair(b)
	for b.Loop() {
		client := p.client(0, nobody)
		client.Transport.(*http.Transport).DisableKeepAlives = true
		if status, _, err := get(client, "/readyz"); err != nil || status != http.StatusOK {
			b.Fatal(status, err)
		}
	}
}
