package installconfig

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// fileBGP is bgpVIPConfig, of OpenShift 5.0: names and values as pkg/asset/manifests/bgpvipconfig.go
// of openshift/installer (toFRRPeers; pull request 10718) reads them, and names of the draft before
// (openshift/enhancements pull request 1982). Values of passwords are not kept.
type fileBGP struct {
	LocalASN    uint32        `json:"localASN"`
	Peers       []fileBGPPeer `json:"peers"`
	Communities []string      `json:"communities"`
}

// fileBGPPeer is a router. Nodes send keepalives after a third of the hold time, whatever
// keepaliveTimeSeconds is.
type fileBGPPeer struct {
	PeerAddress      netip.Addr `json:"peerAddress"`
	PeerASN          uint32     `json:"peerASN"`
	Port             uint16     `json:"port"`
	FailureDetection string     `json:"failureDetection"`
	PeerReachability string     `json:"peerReachability"`
	HoldTimeSeconds  uint16     `json:"holdTimeSeconds"`
	Password         present    `json:"password"`

	// In the draft:
	BFDEnabled   bool              `json:"bfdEnabled"`
	EBGPMultiHop bool              `json:"ebgpMultiHop"`
	HoldTime     v1alpha1.Duration `json:"holdTime"`
}

// present reports whether a field has a value, which is not kept.
type present bool

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *present) UnmarshalText(text []byte) error {
	*p = len(text) > 0
	return nil
}

// BGP holds the routers to which OpenShift's preview would announce VIPs.
type BGP struct {
	v1alpha1.BGP
	// Secrets are the passwords of sessions, whose values are not read.
	Secrets []Secret
}

// Secret is a field with a password, and the file for it on the nodes.
type Secret struct{ Field, File string }

// BGPField is the path of bgpVIPConfig.
const BGPField = "platform.baremetal.bgpVIPConfig"

// IsBGP reports whether a field is of bgpVIPConfig, or of the routers of a single host.
func IsBGP(field string) bool {
	return strings.HasPrefix(field, BGPField) || strings.Contains(field, ".bgpPeers[") || strings.HasSuffix(field, ".bgpPeers")
}

// bgp returns the routers of bgpVIPConfig and of single hosts, nil without. A host with
// routers of its own has sessions with these alone.
func (r *reader) bgp(in *fileBGP, hosts []fileBareMetalHost) *BGP {
	if !r.doc.Has(BGPField) {
		return nil
	}
	out := &BGP{BGP: v1alpha1.BGP{LocalASN: in.LocalASN, Communities: in.Communities}}
	if in.LocalASN == 0 {
		r.missing(BGPField+".localASN", "the AS number of the nodes", BGPField)
	}
	// A warning would leave a session without BFD, or with another port.
	for i, p := range r.problems {
		if p.Code == problem.UnknownField && IsBGP(p.Field) {
			r.problems[i].Severity = problem.Error
		}
	}
	own := slices.ContainsFunc(hosts, func(h fileBareMetalHost) bool { return len(h.BGPPeers) > 0 })
	var others v1alpha1.BGPNodes
	for i, h := range hosts {
		if own && len(h.BGPPeers) == 0 && h.Name != "" {
			others.Names = append(others.Names, h.Name)
		}
		for j := range h.BGPPeers {
			r.bgpPeer(out, fmt.Sprintf("platform.baremetal.hosts[%d].bgpPeers[%d]", i, j), &h.BGPPeers[j], v1alpha1.BGPNodes{Names: []string{h.Name}})
		}
	}
	if !own || len(others.Names) > 0 {
		for i := range in.Peers {
			r.bgpPeer(out, fmt.Sprintf("%s.peers[%d]", BGPField, i), &in.Peers[i], others)
		}
	}
	if len(out.Peers) == 0 {
		r.missing(BGPField+".peers", "the routers of the nodes", BGPField)
	}
	return out
}

// bgpPeer adds a router, or nodes to one that is there already.
func (r *reader) bgpPeer(out *BGP, at string, in *fileBGPPeer, nodes v1alpha1.BGPNodes) {
	if !in.PeerAddress.IsValid() {
		r.missing(at+".peerAddress", "the address of the router", at)
	}
	if in.PeerASN == 0 {
		r.missing(at+".peerASN", "the AS number of the router", at)
	}
	if in.Port != 0 && in.Port != v1alpha1.BGPPort {
		r.add(problem.BadValue, at+".port", fmt.Sprint(in.Port), fmt.Sprint(v1alpha1.BGPPort), "vipgen has sessions at no other port")
	}
	bfd := r.chosen(at+".failureDetection", in.FailureDetection, "BFD", "HoldTimer") || in.BFDEnabled
	hold := cmp.Or(v1alpha1.Duration(time.Duration(in.HoldTimeSeconds)*time.Second), in.HoldTime)
	p := v1alpha1.BGPPeer{Address: in.PeerAddress, ASN: in.PeerASN, BFD: v1alpha1.BFD{Enabled: &bfd}, HoldTime: hold}
	if r.chosen(at+".peerReachability", in.PeerReachability, "MultiHop", "DirectlyConnected") || in.EBGPMultiHop {
		p.Multihop = 255
	}
	if bfd {
		// The preview's FRR has its default, which routers that are set up for it expect.
		p.BFD.Interval, p.BFD.Multiplier = v1alpha1.Duration(v1alpha1.Millis(300)), 3
	}
	if in.Password {
		p.PasswordFile = v1alpha1.BGPPasswordFile(p.Name())
		out.Secrets = append(out.Secrets, Secret{at + ".password", p.PasswordFile})
	}
	for i := range out.Peers {
		same := out.Peers[i]
		if same.Address != p.Address {
			continue
		}
		if same.Nodes = (v1alpha1.BGPNodes{}); !reflect.DeepEqual(same, p) {
			r.add(problem.ConflictingFields, at+".peerAddress", p.Address.String(), "the same settings wherever this router is listed", "")
		}
		out.Peers[i].Nodes.Names = append(out.Peers[i].Nodes.Names, nodes.Names...)
		return
	}
	p.Nodes = nodes
	out.Peers = append(out.Peers, p)
}

// chosen reports whether a field has the first of its two values. The second is the default.
func (r *reader) chosen(field, got, first, second string) bool {
	if got != "" && got != first && got != second {
		r.add(problem.BadValue, field, problem.Quote(got), first+" or "+second, "")
	}
	return got == first
}
