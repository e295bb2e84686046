package keepalived

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
)

// A neighbour that takes the word of somebody else after the first announcement is told
// again, for both families; of an address that is not here nobody hears.
func TestNeighboursAreToldAgain(t *testing.T) {
	testkit.Live(t)
	network := daemon.NewNetwork(t)
	node := daemon.AddNode(t, network, "node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32", "2001:db8::10/128")
	client := daemon.AddNode(t, network, "client", "192.0.2.2/24", "2001:db8::2/64")
	here := []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	elsewhere := netip.MustParseAddr("192.0.2.11")
	const wrong = "02:00:00:00:00:99"
	neighbour := func(args ...string) string {
		t.Helper()
		out, err := client.Command(t.Context(), "ip", append([]string{"neighbour"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	mislead := func(vips ...netip.Addr) {
		for _, vip := range vips {
			neighbour("replace", vip.String(), "lladdr", wrong, "nud", "reachable", "dev", client.Link)
		}
	}
	knows := func(vip netip.Addr) bool {
		got := neighbour("show", vip.String(), "dev", client.Link)
		return strings.Contains(got, "lladdr") && !strings.Contains(got, wrong)
	}

	g := newGARP(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.Do(func() error { g.run(ctx); return nil }) }()
	mislead(append(here, elsewhere)...)
	for range 2 {
		g.announce(append(here, elsewhere))
		for range garpTimes / 2 {
			for _, vip := range here {
				testkit.Await(t, "the client to know where "+vip.String()+" is", func() bool { return knows(vip) })
			}
			mislead(here...)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if knows(elsewhere) {
		t.Errorf("%s was announced, which is not here", elsewhere)
	}
}
