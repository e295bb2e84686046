package listener_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

const instance = `vrrp_instance %s {
  interface eth0
  version %d
  state BACKUP
  virtual_router_id %d
  priority 100
  advert_int %s
  %s
  virtual_ipaddress { %s }
}
`

// sender is an instance of a real keepalived.
type sender struct {
	name     string
	version  int
	id       int
	interval string
	unicast  string
	vip      string
}

const toListener = "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.9 }"

// speak returns a node on one network with a real keepalived.
func speak(t *testing.T, instances ...sender) *netns.Node {
	t.Helper()
	network := daemon.NewNetwork(t)
	node := daemon.AddNode(t, network, "listener", "192.0.2.9/24", "2001:db8::9/64")
	speaker := daemon.NewHost(t, daemon.AddNode(t, network, "speaker", "192.0.2.11/24", "2001:db8::11/64"))
	var conf strings.Builder
	for _, i := range instances {
		fmt.Fprintf(&conf, instance, i.name, i.version, i.id, i.interval, i.unicast, i.vip)
	}
	speaker.Write("/etc/keepalived/keepalived.conf", []byte(conf.String()))
	speaker.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog")
	return node
}

// Real keepalived of both versions, over both families, multicast, and unicast to the host that
// listens: all are received from another namespace, and no other sender.
func TestScan(t *testing.T) {
	node := speak(t,
		sender{"two", 2, 51, "1", "", "192.0.2.51/24"},
		sender{"three", 3, 52, "0.1", "", "192.0.2.52/24"},
		sender{"six", 3, 53, "0.2", "", "2001:db8::53/64"},
		sender{"to", 3, 54, "0.1", toListener, "192.0.2.54/24"},
		sender{"others", 3, 55, "0.1", "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.77 }", "192.0.2.55/24"})
	var s *listener.Scanner
	testkit.Must(t, node.Do(func() (err error) {
		if s, err = listener.Open("no-such"); err == nil || !strings.Contains(err.Error(), `no interface "no-such": this host has`) {
			t.Errorf("an interface that is not there: %v", err)
		}
		s, err = listener.Open()
		return err
	}))
	defer s.Close()
	// Rules that keep VRRP from keepalived do not keep it from the listener.
	if out, err := daemon.NewHost(t, node).Run(nil, "nft", "table inet guard { chain input { type filter hook input priority -10; meta l4proto 112 drop; }; }"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testkit.Equal(t, []string{"eth0"}, s.Interfaces)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ctx) }()
	want := []string{
		"51 IPv4 2 multicast 1000 192.0.2.51",
		"52 IPv4 3 multicast 100 192.0.2.52",
		"53 IPv6 3 multicast 200 2001:db8::53",
		"54 IPv4 3 unicast 100 192.0.2.54",
	}
	seen := func() (out []string) {
		for _, r := range s.Routers() {
			out = append(out, fmt.Sprintf("%d %s %d %s %d %v", r.ID, r.Family, r.Version, r.Mode, r.Interval, r.Addresses[0]))
			from := netip.MustParseAddr("192.0.2.11")
			if r.Interface != "eth0" || r.Priority != 100 || r.Adverts < 1 || r.Source.Is4() && r.Source != from {
				t.Errorf("%+v", r)
			}
		}
		return out
	}
	for ctx.Err() == nil && len(seen()) < len(want) {
		time.Sleep(20 * time.Millisecond)
	}
	testkit.Equal(t, want, seen())
	cancel()
	testkit.Check(t, <-ended)
}
