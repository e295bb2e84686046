package vrrp_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// The priority of a control-plane node for the API VIP: its base with the points of all
// terms that are on.
func ExamplePriorityTerms() {
	priority, terms := vrrp.PriorityTerms(&v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}, v1alpha1.RoleMaster)
	fmt.Println("base", priority)
	for _, t := range terms {
		fmt.Println(t.Name, t.Points)
		if t.On(vrrp.Health{API: true, MachineConfig: true}) {
			priority += t.Points
		}
	}
	fmt.Println("without HAProxy", priority)
	// Output:
	// base 40
	// lb-path 20
	// lb-or-api 5
	// machine-config 3
	// without HAProxy 48
}

// How long a backup waits for an advertisement before it takes over.
func ExampleDownInterval() {
	fmt.Println(vrrp.DownInterval(2, time.Second, 48))
	fmt.Println(vrrp.DownInterval(3, 40*time.Millisecond, 48))
	// Output:
	// 3.8125s
	// 152.5ms
}

// An advertisement on the wire, and parsed again.
func ExampleParseAdvert() {
	holder, group := netip.MustParseAddr("192.0.2.10"), vrrp.MulticastGroup(false)
	sent := vrrp.Advert{Version: 3, RouterID: 147, Priority: 68, Interval: 40 * time.Millisecond,
		Source: holder, VIPs: []netip.Addr{netip.MustParseAddr("192.0.2.5")}}
	received, err := vrrp.ParseAdvert(holder, sent.Marshal(group))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("router", received.RouterID, "priority", received.Priority, "every", received.Interval, received.VIPs)
	// Output: router 147 priority 68 every 40ms [192.0.2.5]
}
