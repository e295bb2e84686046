package explain

import (
	"fmt"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

// routed lists the failures of VIPs that nodes announce to routers.
func routed(c *render.Cluster, s *verify.Setup) []Failure {
	if s.Stage == verify.StageInstallation {
		return []Failure{}
	}
	dead := 0
	for _, p := range c.Config.Spec.BGP.Peers {
		d := time.Duration(p.HoldTime)
		if p.BFD.On() {
			d = time.Duration(p.BFD.Multiplier) * time.Duration(p.BFD.Interval)
		}
		dead = max(dead, milliseconds(d))
	}
	share := "Connections that routers sent to it are lost, and new ones of its share; those to other nodes stay where routers keep the paths of the others (resilient hashing), else some of them move to another node and are lost too."
	if c.Config.Spec.BGP.OnePath() {
		share = "Routers send all connections to one node, the first that serves, by name. If it was that one, all connections are lost and new ones go to the next; else nothing changes."
	}
	out := []Failure{
		{What: "A node loses power, or the network", Brief: "its share is lost; its share of new ones waits", WithoutAnswerMS: dead, Seen: share},
		{What: "The agent that announces is killed on a node", Brief: "its share is lost", Seen: "Its sessions end at once. " + share},
		{What: "A node shuts down properly", Brief: "its share moves first", Seen: "Its routes first become worse than those of other nodes, and then go: new connections go to other nodes while it still answers. Connections that are open break when it ends."},
		{What: "Every node that announces is away", Brief: "unreachable until one is back", Seen: "Routers have no route: connections fail until a node is back."},
	}
	if s.Group.Role == v1alpha1.GroupAPI {
		out = append(out, Failure{What: "HAProxy ends on a node, and does not come back", Brief: "its share is lost; new ones move", WithoutAnswerMS: after(vrrp.HAProxyProbe.Refused(), 0),
			Seen: fmt.Sprintf("The node's routes become worse than those of nodes with HAProxy: routers use these. It announces nothing when its own API server is away too. If no node has HAProxy, those with an API server stay; if none is ready anywhere, the last ones stay too (hard case %d).", 45)})
	}
	return out
}
