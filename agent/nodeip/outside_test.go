package nodeip

import "testing"

// With VIPs outside of the machine networks, these are ignored (hard case 44).
func TestHardCase44(t *testing.T) {
	const wizard = "10.0.0.0/16"
	for _, tt := range []choice{
		{"the VIP's network, not the machine network", "192.0.2.5 192.0.2.6", wizard, "192.0.3.10/23 eth1",
			"link eth0; addr 10.0.1.10/16; route default via 10.0.0.1; link eth1; addr 192.0.3.10/23"},
		{"both families, of which the machine networks have one", "192.0.2.5 2001:db8::5", wizard, "192.0.2.10/24 eth0, 2001:db8::10/64 eth0",
			"link eth0; addr 192.0.2.10/24; addr 2001:db8::10/64; route default via 192.0.2.1"},
		{"no subnet of the VIP: the default route", "192.0.2.5", wizard, "198.51.100.10/24 eth1",
			"link eth0; addr 10.0.1.10/16; link eth1; addr 198.51.100.10/24; route default via 198.51.100.1"},
		{"neither: waits, although there is one in the machine network", "192.0.2.5", wizard, "no IPv4",
			"link eth0; addr 10.0.1.10/16"},
	} {
		tt.run(t)
	}
}
