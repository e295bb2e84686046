package state

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// JobName implements Job.
func (BGP) JobName() string { return "bgp" }

// BGP is the state of the job that announces VIPs to routers.
type BGP struct {
	// Mode is bgp or table; empty where the cluster has neither.
	Mode     v1alpha1.Announce `json:"mode,omitempty"`
	LocalASN uint32            `json:"localASN,omitempty"`
	VIPs     []AnnouncedVIP    `json:"vips,omitempty"`
	Peers    []BGPPeer         `json:"peers,omitempty"`
	Facts    []Fact            `json:"facts,omitempty"`
	// Problem is why VIPs are not announced as they should be.
	Problem        string `json:"problem,omitempty"`
	ClusterProblem string `json:"clusterProblem,omitempty"`
}

// AnnouncedVIP is a VIP that the node may announce.
type AnnouncedVIP struct {
	Group string     `json:"group"`
	VIP   netip.Addr `json:"vip"`
	// Announced reports that the node announces it, with a preference: routers send
	// traffic to the nodes with the lowest.
	Announced  bool `json:"announced"`
	Preference int  `json:"preference,omitempty"`
	// Local reports that the node accepts packets for the VIP.
	Local bool `json:"local"`
	// Why is the reason.
	Why string `json:"why,omitempty"`
}

// BGPPeer is a router.
type BGPPeer struct {
	// Address is none where the router of an interface has not been found.
	Address netip.Addr `json:"address,omitzero"`
	// Interface is set for a session by interface.
	Interface string `json:"interface,omitempty"`
	ASN       uint32 `json:"asn"`
	// State is the state of the session (RFC 4271 section 8.2.2), in lower case.
	State string `json:"state"`
	// BFD is up, down or init (RFC 5880 section 6.2); empty without BFD.
	BFD string `json:"bfd,omitempty"`
	// Problem is why there is no session, or what is wrong with BFD.
	Problem string `json:"problem,omitempty"`
}

// Name returns the name of the router in texts: its address, or the interface that leads to it.
func (p *BGPPeer) Name() string {
	return (&v1alpha1.BGPPeer{Address: p.Address, Interface: p.Interface}).Name()
}

// Problems of sessions. RouterRefused and SessionEnded end with the NOTIFICATION (RFC 4271 section
// 4.5). `vipgen doctor` tells causes by them.
const (
	HoldTimeExpired = "the hold time expired: the router sent nothing"
	RouterRefused   = "the router ended the session: "
	SessionEnded    = "this node ended the session: "
	ConnectionLost  = "the connection with the router was lost"
	BFDDown         = "BFD with the router went down"
	BFDPending      = "VIPs are announced once BFD is up"
	OtherSpeaker    = "another speaker on this node has the session"
	BFDMissing      = "BFD with the router does not come up: is it configured there? VIPs are announced without BFD"
)

// Carries reports whether the router has the VIPs: sessions with BFD carry routes once it is up,
// or does not come up.
func (p *BGPPeer) Carries() bool {
	return p.Established() && (p.BFD == "" || p.BFD == "up" || p.Problem == BFDMissing)
}

// Established reports whether the session is established.
func (p *BGPPeer) Established() bool { return p.State == "established" }
