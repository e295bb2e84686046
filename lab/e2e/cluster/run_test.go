package cluster

import (
	"flag"
	"strings"
	"testing"
)

// Parts of a run; `make e2e` runs all of them.
var (
	faultNames = flag.String("faults", "power loss", "beginnings of the names of faults that happen, separated by commas; all for every one of them")
	workers    = flag.Int("workers", 1, "number of workers")
	local      = flag.String("local", "", "spec.apiServer.local of the cluster, if not the default")
	reports    = flag.String("reports", "", "directory for the logs of containers")
)

// TestCluster installs a cluster like an installer, and injects faults while a client uses it.
func TestCluster(t *testing.T) {
	c := newCluster(t, "UserManaged")
	r := newReport(t)
	c.install(r, *workers)
	c.checkPods()
	c.checkPlugin()
	for _, f := range c.faults() {
		if chosen(f.name) {
			c.during(r, f)
		}
	}
	c.checkPods()
}

func chosen(name string) bool {
	for want := range strings.SplitSeq(*faultNames, ",") {
		if want == "all" || want != "" && strings.HasPrefix(name, want) {
			return true
		}
	}
	return false
}
