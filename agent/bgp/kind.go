package bgp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

var name = state.BGP{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  name,
	Short: "Announce VIPs to routers while this node serves them",
	Long: `Announce the VIPs that this node serves to its routers, or keep them in a routing table
for a BGP speaker that the node has already (spec.announce of vipgen.yaml). BGP sessions
take vipgen-bgp, which is this program with a speaker. The environment variable NODE_NAME
holds the name of this node. At SIGTERM it withdraws the VIPs, such that other nodes take
over first, and ends.`,
	Example: "  NODE_NAME=master-0 vipgen-agent bgp --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	Port:    func(p v1alpha1.Ports) int { return p.BGPMonitor },
	Conf:    v1alpha1.BGPKept,
	Watch: func(role string, o *nodelist.Options) {
		o.RouterPods = role != v1alpha1.RoleBootstrap && role != v1alpha1.RoleArbiter
	},
	New: func(e job.Environment) job.Job {
		return &Job{Root: e.Root, Source: e.Source, State: e.State, Checks: e.Checks, Log: e.Log}
	},
	Probed: "whether the bgp job answers",
	Probe:  func(context.Context, job.Environment) error { return nil },
	Summary: func(dir *state.Dir) (any, [][]string, error) {
		s, err := state.Read[state.BGP](dir)
		if err != nil || s == nil {
			return nil, nil, err // most nodes have no such job
		}
		return s, rows(s), nil
	},
}

func rows(s *state.BGP) [][]string {
	out := [][]string{{name, "no announcements"}}
	switch s.Mode {
	case v1alpha1.AnnounceBGP:
		out[0] = []string{name, "announces to routers", fmt.Sprintf("AS %d", s.LocalASN)}
	case v1alpha1.AnnounceTable:
		out[0] = []string{name, "keeps routes", fmt.Sprintf("in routing table %d", v1alpha1.AnnounceTableNumber)}
	}
	for _, v := range s.VIPs {
		text := "withdrawn"
		switch {
		case v.Announced && v.Preference == 0:
			text = "announced"
		case v.Announced:
			text = fmt.Sprintf("announced, behind other nodes (%d)", v.Preference)
		}
		out = append(out, []string{"  " + v.VIP.String(), text, v.Why})
	}
	for _, p := range s.Peers {
		row := []string{"  router " + p.Name(), p.State, fmt.Sprintf("AS %d", p.ASN)}
		if p.Interface != "" && p.Address.IsValid() {
			row = append(row, p.Address.WithZone("").String())
		}
		if p.BFD != "" {
			row = append(row, "BFD "+p.BFD)
		}
		if p.Problem != "" {
			row = append(row, job.FirstLine(p.Problem))
		}
		out = append(out, row)
	}
	if problem := cmp.Or(s.ClusterProblem, s.Problem); problem != "" {
		out = append(out, []string{"  problem", job.FirstLine(problem)})
	}
	return out
}
