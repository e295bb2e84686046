package fabric

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Requests of a peer that are none, too long, or out of order do nothing.
func TestServeRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`{"protocol":1,"do":"join","address":"192.0.2.9","own":"192.0.2.2"}`:   "not started with the address 192.0.2.9: start both",
		`{"protocol":2,"do":"join","address":"192.0.2.250","own":"192.0.2.2"}`: "different versions",
		`{"protocol":1,"do":"join","address":"192.0.2.250","own":"192.0.2.1"}`: "both nodes must be in one subnet",
		`{"protocol":1,"do":"join","address":"192.0.2.250"}`:                   "both nodes must be in one subnet",
		`{"protocol":1,"do":"hold","address":"192.0.2.250"}`:                   "was not joined",
		`{"protocol":1,"do":"hold","address":"192.0.2.251"}`:                   "was not searched for, or is in use",
		`{"protocol":1,"do":"move","address":"192.0.2.251"}`:                   "is not on this node",
		`{"protocol":1,"do":"speak","address":"192.0.2.251"}`:                  "is not on this node",
		`{"protocol":1,"do":"move","address":"192.0.2.252","form":"rarp"}`:     `cannot be announced by \"rarp\"`,
		`{"protocol":1,"do":"repeat","address":"192.0.2.252"}`:                 `cannot be announced by \"\"`,
		`{"protocol":1,"do":"reboot","address":"192.0.2.252"}`:                 `unknown request \"reboot\"`,
		`no JSON`: "",
		`"` + strings.Repeat("a", maxMessage) + `"`: "",
	} {
		here, there := net.Pipe()
		at := func(text string) target {
			return target{address: netip.MustParseAddr(text), own: netip.MustParseAddr("192.0.2.1"), subnet: netip.MustParsePrefix("192.0.2.0/24")}
		}
		idle, holder := &station{target: at("192.0.2.251")}, &station{target: at("192.0.2.252"), held: &net.UDPConn{}}
		n := &node{targets: []target{at("192.0.2.250")}, stations: map[netip.Addr]*station{idle.address: idle, holder.address: holder}}
		ended := make(chan error, 1)
		go func() { ended <- n.serve(t.Context(), there); there.Close() }()
		_, _ = here.Write([]byte(line + "\n"))
		b := make([]byte, maxMessage)
		read, _ := here.Read(b)
		testkit.Contains(testkit.In(t, line[:7]), string(b[:read]), want)
		here.Close()
		if err := <-ended; (want == "") != (err != nil) {
			t.Errorf("%.50s: %v", line, err)
		}
	}
}
