package importer

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Wire is the content of an instance's advertisements for one VIP.
type Wire struct {
	VIP      string
	ID       int
	Version  int
	AdvertMS int
	Unicast  bool
	Password string
}

// OnWire returns the instances of a rendered keepalived.conf, VIP by VIP.
func OnWire(t testing.TB, file string, text []byte) []Wire {
	t.Helper()
	k, list := parseKeepalived(file, text)
	testkit.Must(t, list.Err())
	var out []Wire
	for _, i := range k.instances {
		for _, v := range i.VIPs {
			out = append(out, Wire{v.Addr().String(), i.RouterID, i.Version, i.AdvertMS, i.unicastLine() > 0, i.Password})
		}
	}
	return out
}
