package agentcli

import (
	"slices"

	"github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/agent/coredns"
	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/haproxy"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/agent/mdns"
	"github.com/vipgen/vipgen/internal/lists"
)

// jobs are the jobs of a node, in the order of `status`. Each is a directory below agent
// and a line here.
var jobs = []job.Kind{
	keepalived.Kind,
	bgp.Kind,
	haproxy.Kind,
	firewall.Kind,
	coredns.Kind,
	mdns.Kind,
}

func jobNames() []string {
	out := lists.Map(jobs, func(k job.Kind) string { return k.Name })
	slices.Sort(out)
	return out
}
