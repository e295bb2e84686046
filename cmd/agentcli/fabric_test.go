package agentcli

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/agent/fabric"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestPrintFabric(t *testing.T) {
	address, a, b := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var out bytes.Buffer
	testkit.Must(t, (&app{out: &out}).printFabric(&fabric.Report{Checks: []fabric.Check{
		{Name: "unused", Address: address, From: a, Result: fabric.Pass, Figure: "answers: 0"},
		{Name: "source", Address: address, From: b, To: a, Result: fabric.Fail, Figure: "0 of 5 packets", Cause: "dropped", Next: "allow it"},
	}}))
	testkit.Equal(t, `CHECK   ADDRESS      FROM       TO         RESULT  FIGURE
unused  192.0.2.250  192.0.2.1  -          pass    answers: 0
source  192.0.2.250  192.0.2.2  192.0.2.1  fail    0 of 5 packets

fail: source, from 192.0.2.2 to 192.0.2.1
  cause  dropped
  next   allow it
`, out.String())
}
