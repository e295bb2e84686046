package haproxy

import (
	"context"
	"net/netip"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// leave keeps serving until the API VIPs are on other nodes, or for job.ShutdownBound
// (hard case 43). The published state makes the firewall job keep the redirect without
// counting it, so that the node loses the VIPs even if only this pod ends.
//
// The node's API server may be stopping as well, which checks notice later: it is drained if there
// is another one.
func (j *Job) leave() {
	cluster, node, err := j.Source.Current()
	if err != nil {
		return
	}
	var vips []netip.Addr
	for _, g := range cluster.Spec.Groups {
		if g.Role == v1alpha1.GroupAPI {
			vips = append(vips, g.VIPs...)
		}
	}
	if here, err := job.VIPsHere(vips); err != nil || !here {
		return
	}
	j.mu.Lock()
	j.leaving = true
	j.mu.Unlock()
	j.publish()
	if _, err := ask(context.Background(), v1alpha1.HAProxySocket, "set server api-servers/"+node.Name+" state drain"); err != nil {
		j.Log.Debug("cannot drain the node's own API server", "error", err)
	}
	job.AwaitShutdown(j.Log, vips)
	j.mu.Lock()
	j.leaving = false
	j.mu.Unlock()
}
