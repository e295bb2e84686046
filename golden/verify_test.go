package golden

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// proved holds the cases whose proofs and explanations are kept, in verified/: with and without
// OpenShift's own keepalived at the start, with two families on one port, with more API VIPs,
// and with several ingress controllers. `make test` proves these alone.
var proved = map[string]bool{"baremetal-usermanaged": true, "openstack-dual-stack": true, "additional-api-vips": true, "ingress-controllers": true}

// TestVerify proves for every case that the VIPs are on the right nodes.
func TestVerify(t *testing.T) {
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if !proved[c.name] {
				testkit.Long(t)
			}
			t.Parallel()
			for _, command := range [][]string{{"verify"}, {"explain"}, {"explain", "--all"}} {
				name := strings.Join(command, "")
				out, report := vipgen(t, c.args(t, command[0], command[1:]...)...) // fails unless the exit code is 0
				if len(out) == 0 {
					t.Errorf("%s prints nothing\n%s", name, report)
				}
				if proved[c.name] {
					checkTold(t, filepath.Join("verified", c.name+"."+name+".txt"), out)
				}
			}
		})
	}
}

// checkTold compares an output with the kept one, or updates it.
func checkTold(t *testing.T, path string, got []byte) {
	t.Helper()
	testkit.Kept(t, path, got, *update)
}
