package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

// Report explains every group of VIPs.
type Report struct {
	Cluster string `json:"cluster"`
	// ProfileReason is the reason for the cluster's profile; empty where its input chose it,
	// and without VIPs on nodes.
	ProfileReason string  `json:"profileWhy,omitempty"`
	Groups        []Group `json:"groups"`
	// OwnRequests are the paths to the API of programs on the nodes of each pool.
	OwnRequests []verify.OwnRequests `json:"ownRequests,omitempty"`
	// NamedCertificates is the part of an APIServer object, as YAML, that the names of
	// additional API VIPs need; empty without them.
	NamedCertificates string `json:"namedCertificates,omitempty"`
}

// Group is a set of VIPs with one purpose.
type Group struct {
	Name string       `json:"name"`
	VIPs []netip.Addr `json:"vips"`
	// InstallersDefault is set where the installer chooses the VIPs.
	InstallersDefault bool `json:"installersDefault,omitempty"`
	VirtualRouterID   int  `json:"virtualRouterID"`
	// Announce is bgp or table where routers know the VIPs; empty for VRRP.
	Announce v1alpha1.Announce `json:"announce,omitempty"`
	// Together is set where the VIPs move together.
	Together bool `json:"together,omitempty"`
	// Clients describes the needs of clients at VIPs that not every cluster has; nil for others.
	Clients *Clients `json:"clients,omitempty"`
	Stages  []Stage  `json:"stages"`
}

// Stage is a stage in the life of the cluster.
type Stage struct {
	Stage   string                `json:"stage"`
	VRRP    v1alpha1.VRRPSettings `json:"vrrp"`
	Holders []Holder              `json:"holders"`
	Notes   []string              `json:"notes,omitempty"`
	Timing  Timing                `json:"timing"`
	// Failures lists the failures of this stage only.
	Failures []Failure `json:"failures"`
}

// Holder are the nodes of one pool that can hold the VIPs.
type Holder struct {
	Role  string `json:"role"`
	Count int    `json:"count"`
	// Nodes are the known names.
	Nodes []string `json:"nodes,omitempty"`
	// Priority is the priority of a node on which nothing works but keepalived, Most that of
	// one on which everything works.
	Priority int    `json:"priority"`
	Terms    []Term `json:"terms,omitempty"`
	Most     int    `json:"most"`
}

// Term is a check's contribution to a priority.
type Term struct {
	Name    string `json:"name"`
	Points  int    `json:"points"`
	Veto    bool   `json:"veto,omitempty"`
	Meaning string `json:"meaning"`
}

// Cluster explains the VIPs of a cluster.
func Cluster(c *render.Cluster) (*Report, error) {
	samples, err := verify.Samples(c)
	if err != nil {
		return nil, err
	}
	certificates, err := namedCertificates(&c.Config.Spec)
	if err != nil {
		return nil, err
	}
	r := &Report{Cluster: c.Config.Metadata.Name, ProfileReason: c.ProfileReason, Groups: []Group{}, OwnRequests: verify.Requests(c, samples), NamedCertificates: certificates}
	for i := range samples {
		s := &samples[i]
		announce := c.Config.Spec.AnnounceOf(&s.Group)
		if !announce.Routed() {
			announce = ""
		}
		if n := len(r.Groups); n == 0 || r.Groups[n-1].Name != s.Group.Name {
			r.Groups = append(r.Groups, Group{Name: s.Group.Name, VIPs: s.Group.VIPs, InstallersDefault: !c.Given(&s.Group), VirtualRouterID: s.Group.VirtualRouterID,
				Announce: announce, Together: s.Group.Together, Clients: clients(c, &s.Group)})
		}
		stage, err := explain(c, s)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", s.Group.Name, err)
		}
		g := &r.Groups[len(r.Groups)-1]
		g.Stages = append(g.Stages, stage)
	}
	return r, nil
}

func explain(c *render.Cluster, s *verify.Setup) (Stage, error) {
	out := Stage{Stage: s.Stage, VRRP: s.VRRP, Notes: s.Notes, Holders: holders(s)}
	if c.Config.Spec.AnnounceOf(&s.Group).Routed() {
		out.Failures = routed(c, s)
		return out, nil
	}
	t, err := timing(s, successorPriority(out.Holders))
	if err != nil {
		return out, err
	}
	out.Timing = t
	f := failures{cluster: c, setup: s, Timing: t}
	out.Failures, err = f.list()
	return out, err
}

// holders returns the pools of a setup in its order.
func holders(s *verify.Setup) []Holder {
	var out []Holder
	for _, n := range s.Nodes {
		i := slices.IndexFunc(out, func(h Holder) bool { return h.Role == n.Facts.Role })
		if i < 0 {
			i = len(out)
			out = append(out, holder(&s.Group, n.Facts.Role))
		}
		out[i].Count++
		if !n.Invented {
			out[i].Nodes = append(out[i].Nodes, n.Facts.Name)
		}
	}
	return out
}

func holder(g *v1alpha1.Group, role string) Holder {
	base, terms := vrrp.PriorityTerms(g, role)
	return Holder{Role: role, Priority: base, Most: vrrp.FullPriority(g, role), Terms: lists.Map(terms, func(t vrrp.Term) Term {
		return Term{Name: t.Name, Points: t.Points, Veto: t.Points == 0, Meaning: t.Meaning}
	})}
}

// successorPriority returns the priority of a healthy successor: not the bootstrap's, which no
// node waits for.
func successorPriority(list []Holder) int {
	most := 0
	for _, h := range list {
		if h.Role != v1alpha1.RoleBootstrap {
			most = max(most, h.Most)
		}
	}
	return most
}

// Timing is the traffic of advertisements, and the time to notice missing ones. All times are
// upper bounds, in milliseconds.
type Timing struct {
	// AdvertMS is the time between adverts.
	AdvertMS int `json:"advertMS"`
	// Peers is the number of nodes that the holder sends each advert to; 0 means multicast.
	Peers int `json:"peers"`
	// Sent and Received are adverts per second, of all VIPs of the group: sent by the holder,
	// and received by another node.
	Sent     float64 `json:"sentPerSecond"`
	Received float64 `json:"receivedPerSecond"`
	// DeadMS is the time until a backup takes over from a silent holder, GoodbyeMS from one
	// that announces its stop, BetterMS from one with a lower priority.
	DeadMS    int `json:"deadMS"`
	GoodbyeMS int `json:"goodbyeMS"`
	BetterMS  int `json:"betterMS"`
	// StallMS is the longest pause of a holder without a takeover: at worst its next advert was
	// just due.
	StallMS int `json:"stallMS"`
}

// timing returns the times of a setup, for a successor with that priority.
func timing(s *verify.Setup, priority int) (Timing, error) {
	var t Timing
	for _, n := range s.Nodes {
		if len(n.Conf) == 0 || n.Facts.Role == v1alpha1.RoleBootstrap {
			continue
		}
		conf, err := verify.Parse(n.Conf)
		if err != nil {
			return t, fmt.Errorf("keepalived.conf of %s: %w", n.Facts.Name, err)
		}
		own := conf.InstancesOf(s.Group.VIPs)
		if len(own) == 0 {
			continue
		}
		for _, i := range own {
			perSecond := 1000 / float64(i.AdvertMS)
			t.AdvertMS, t.Peers = max(t.AdvertMS, i.AdvertMS), max(t.Peers, len(i.Peers))
			t.Sent += perSecond * float64(max(1, len(i.Peers)))
			t.Received += perSecond
			interval := time.Duration(i.AdvertMS) * time.Millisecond
			t.GoodbyeMS = max(t.GoodbyeMS, milliseconds(vrrp.Skew(i.Version, interval, priority)))
			dead := milliseconds(vrrp.DownInterval(i.Version, interval, priority))
			t.DeadMS = max(t.DeadMS, dead)
			if stall := dead - i.AdvertMS - 1; t.StallMS == 0 || stall < t.StallMS { // dead is rounded up
				t.StallMS = stall
			}
		}
		break
	}
	// keepalived drops adverts of lower priority, as if the holder were silent.
	t.BetterMS = t.DeadMS
	return t, nil
}

func milliseconds(d time.Duration) int {
	return int((d + time.Millisecond - 1) / time.Millisecond)
}
