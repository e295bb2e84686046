package vrrp_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// The profile fast: a backup with priority 68 replaces a silent holder after three
// advertisements and the skew, and one that stops properly after the skew.
func ExampleDownInterval() {
	interval := 40 * time.Millisecond
	fmt.Println(vrrp.DownInterval(3, interval, 68).Round(time.Millisecond))
	fmt.Println(vrrp.Skew(3, interval, 68).Round(time.Millisecond))
	// Output:
	// 149ms
	// 29ms
}

// With 400 peers a holder would send 10,000 advertisements a second.
func ExamplePacedInterval() {
	fmt.Println(vrrp.PacedInterval(40, 80, 3), vrrp.PacedInterval(40, 400, 3))
	// Output: 40 200
}

// The priority of a control-plane node for the API VIP, while HAProxy is down and its own API
// server and machine config server work.
func ExamplePriorityTerms() {
	api := &v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}
	node := vrrp.Health{API: true, MachineConfig: true}
	priority, terms := vrrp.PriorityTerms(api, "master")
	for _, t := range terms {
		if t.On(node) {
			priority += t.Points
			fmt.Printf("+%d %s\n", t.Points, t.Name)
		}
	}
	fmt.Println(priority, "of", vrrp.FullPriority(api, "master"))
	// Output:
	// +5 lb-or-api
	// +3 machine-config
	// 48 of 68
}

// Peers decode what a holder sends.
func ExampleAdvert_Marshal() {
	sent := &vrrp.Advert{Source: netip.MustParseAddr("192.0.2.10"), Version: 3, RouterID: 97, Priority: 68,
		Interval: 40 * time.Millisecond, VIPs: []netip.Addr{netip.MustParseAddr("192.0.2.5")}}
	heard, err := vrrp.ParseAdvert(sent.Source, sent.Marshal(netip.MustParseAddr("192.0.2.11")))
	fmt.Println(heard.RouterID, heard.Priority, heard.Interval, heard.VIPs, err)
	// Output: 97 68 40ms [192.0.2.5] <nil>
}
