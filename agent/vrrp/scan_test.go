package vrrp_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/vrrp"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
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

// Real keepalived of both versions, over both families, multicast, and unicast
// to the host that listens: all are seen from another namespace, and nobody else.
func TestScan(t *testing.T) {
	network := daemon.NewNetwork(t)
	listener := daemon.AddNode(t, network, "listener", "192.0.2.9/24", "2001:db8::9/64")
	speaker := daemon.NewHost(t, daemon.AddNode(t, network, "speaker", "192.0.2.11/24", "2001:db8::11/64"))
	var conf strings.Builder
	for _, i := range []struct {
		name     string
		version  int
		id       int
		interval string
		unicast  string
		vip      string
	}{
		{"two", 2, 51, "1", "", "192.0.2.51/24"},
		{"three", 3, 52, "0.1", "", "192.0.2.52/24"},
		{"six", 3, 53, "0.2", "", "2001:db8::53/64"},
		{"to", 3, 54, "0.1", "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.9 }", "192.0.2.54/24"},
		{"others", 3, 55, "0.1", "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.77 }", "192.0.2.55/24"},
	} {
		fmt.Fprintf(&conf, instance, i.name, i.version, i.id, i.interval, i.unicast, i.vip)
	}
	speaker.Write("/etc/keepalived/keepalived.conf", []byte(conf.String()))
	speaker.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog")

	var s *vrrp.Scanner
	if err := listener.Do(func() (err error) {
		if s, err = vrrp.Open("no-such"); err == nil || !strings.Contains(err.Error(), `no interface "no-such": this host has`) {
			t.Errorf("an interface that is not there: %v", err)
		}
		s, err = vrrp.Open()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// What keeps VRRP from keepalived keeps it from nobody here.
	if out, err := daemon.NewHost(t, listener).Run(nil, "nft", "table inet guard { chain input { type filter hook input priority -10; meta l4proto 112 drop; }; }"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.Equal(s.Interfaces, []string{"eth0"}) {
		t.Errorf("listens on %v", s.Interfaces)
	}
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
	if got := seen(); !slices.Equal(got, want) {
		t.Errorf("saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
