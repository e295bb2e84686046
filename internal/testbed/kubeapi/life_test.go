package kubeapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// A server that shuts down reports it at /readyz, and answers all other requests (hard case 8).
func TestStop(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	delay := make(chan time.Time)
	p.Plane.(*standIn).delay = func() <-chan time.Time { return delay }
	client := p.client(0, admin, administrators)
	ended := make(chan error, 2)
	resp, err := client.Get("https://" + internalName(domain) + ":6443" + nodesPath + "?watch=true")
	p.must(err)
	defer resp.Body.Close()
	go func() { _, err := io.Copy(io.Discard, resp.Body); ended <- err }()
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
	p.setNode("worker-0", "192.0.2.20")
	close(delay)
	p.must(<-ended)
	p.must(<-ended)
	if p.servers[0].Running() {
		t.Error("it runs after Stop")
	}
}

// A client that missed more changes than are kept gets an error, and lists again.
func TestTooFarBehind(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	p.Plane.(*standIn).store.history = 5
	for i := range 10 {
		p.setNode("b", fmt.Sprintf("192.0.2.%d", 30+i))
	}
	_, body, err := get(p.client(1, admin, administrators), nodesPath+"?watch=true&resourceVersion=1")
	p.must(err)
	testkit.Contains(t, body, `"type":"ERROR"`, `"reason":"Expired"`)
}
