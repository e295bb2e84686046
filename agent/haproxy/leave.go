package haproxy

import (
	"context"
	"net/netip"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// leave goes on serving until the API VIPs are on other nodes, or for job.ShutdownBound (hard
// case 43). What it publishes has the firewall job keep the redirect and say that nobody is
// to rely on it, so that the node loses the VIPs even if only this pod ends.
//
// The node may be ending, and its API server with it, which says so after the check that
// comes next. It gets no new connections from here as long as there is another.
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
		j.Log.Debug("HAProxy cannot be told to spare the node's own API server", "error", err)
	}
	j.Log.Info("HAProxy serves until the VIPs are on other nodes", "gone", job.AwaitVIPs(vips, job.ShutdownBound))
	j.mu.Lock()
	j.leaving = false
	j.mu.Unlock()
}
