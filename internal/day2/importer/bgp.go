package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// keepPreview keeps the routers of OpenShift's preview, with the problems of their fields.
func (i *importer) keepPreview(c *installconfig.InstallConfig, list problem.List) {
	if c.BGP == nil {
		return
	}
	i.preview = c
	i.list = append(i.list, lists.Filter(list.Errors(), func(p problem.Problem) bool { return installconfig.IsBGP(p.Field) })...)
}

// settleBGP announces the VIPs as OpenShift's preview does. MetalLB's routers are kept as a
// comment: they have none of the VIPs, and a VIPConfig without VIPs by BGP refuses routers.
func (i *importer) settleBGP(vc *v1alpha1.VIPConfig) {
	switch {
	case (i.preview != nil || i.routersNow != nil) && (i.keepalivedRuns || len(i.confs) > 0):
		i.assume("announcement of VIPs", string(v1alpha1.AnnounceVRRP), "installed with bgpVIPConfig, but keepalived runs")
	case i.routersNow != nil:
		routers, list := installconfig.ReadBGPVIPConfig(i.routersNow, lists.Map(i.seen, func(n Node) string { return n.Name }))
		i.list = append(i.list, list.Errors()...)
		i.settlePreview(vc, routers, i.routersNow, "localASN")
	case i.preview != nil:
		i.assume("BGP routers", "those of the installation", "the source does not have the ConfigMap bgp-vip-config of openshift-network-operator, in which they can change later")
		i.settlePreview(vc, i.preview.BGP, i.preview.Doc, installconfig.BGPField)
	case i.managed.File != "":
		vc.Spec.Announce = v1alpha1.AnnounceBGP
		i.add(problem.Problem{File: i.managed.File, Line: i.managed.Line, Code: problem.MissingField, Field: installconfig.BGPField, Found: "VIPs that OpenShift announces by BGP, and no routers",
			Expected: "the ConfigMap cluster-config-v1 of kube-system, whose install-config has them, or bgp-vip-config of openshift-network-operator"})
	}
	if !vc.Spec.Announce.Routed() {
		i.routers = i.metalLBRouters()
	} else if len(i.metallb) > 0 {
		i.lose(i.metallb[0].at("metadata.name"), "MetalLB's routers", "those of bgpVIPConfig alone")
	}
}

// settlePreview announces the VIPs to the preview's routers, of a field of a document.
func (i *importer) settlePreview(vc *v1alpha1.VIPConfig, routers *installconfig.BGP, doc *source.Document, field string) {
	at := position(doc, field)
	vc.Spec.Announce, vc.Spec.BGP = v1alpha1.AnnounceBGP, routers.BGP
	i.lose(at, "OpenShift's kube-vip and FRR, which announce the VIPs now",
		"its own announcements: both on a node are a conflict, so the feature gate BGPBasedVIPManagement has to be off there")
	for _, s := range routers.Secrets {
		i.losePasswordFile(position(doc, s.Field), s.File)
	}
	for n := range vc.Spec.BGP.Peers {
		i.carryRouter(&vc.Spec.BGP.Peers[n], at)
	}
}

func (i *importer) losePasswordFile(at Place, file string) {
	i.lose(at, "the password of BGP sessions, which is not read", "the first line of "+file+" on the nodes, mode 0600: bring that file by a MachineConfig of your own or by hand")
}

// carryRouter carries a router over, without BFD over several hops.
func (i *importer) carryRouter(p *v1alpha1.BGPPeer, at Place) {
	if p.Multihop != 0 && p.BFD.On() {
		p.BFD = v1alpha1.BFD{Enabled: new(bool)}
		i.lose(at, "BFD over several hops", "none: a dead node is noticed after the hold time")
	}
	of := "every node"
	if len(p.Nodes.Names) > 0 {
		of = strings.Join(lists.Map(p.Nodes.Names, shown), ", ")
	}
	i.carry("BGP router", fmt.Sprintf("%s, AS %d, of %s", p.Name(), p.ASN, of), at)
}

// commentedRouters returns MetalLB's routers as lines that continue spec without "# ".
func (i *importer) commentedRouters() string {
	if i.routers == nil || len(i.routers.Peers) == 0 {
		return ""
	}
	return "# MetalLB's routers. They are a comment because no VIP of this cluster is announced by\n" +
		"# BGP. To use them, see docs/move-to-bgp.md, and the report about MetalLB's sessions.\n#   " +
		strings.TrimSuffix(strings.ReplaceAll(string(marshal(map[string]any{"bgp": i.routers})), "\n", "\n#   "), "#   ")
}

// metalLB is a BGPPeer (v1beta1 or v1beta2), BFDProfile or BGPAdvertisement of metallb.io, with
// fields of all three (metallb/metallb, folder api). Passwords are not declared: they are never
// decoded.
type metalLB struct {
	header
	doc  *source.Document
	Spec struct {
		MyASN         uint32            `json:"myASN"`
		LocalASN      uint32            `json:"localASN"`
		ASN           uint32            `json:"peerASN"`
		DynamicASN    string            `json:"dynamicASN"`
		Address       netip.Addr        `json:"peerAddress"`
		Interface     string            `json:"interface"`
		HoldTime      v1alpha1.Duration `json:"holdTime"`
		KeepaliveTime v1alpha1.Duration `json:"keepaliveTime"`
		BFDProfile    string            `json:"bfdProfile"`
		EBGPMultiHop  bool              `json:"ebgpMultiHop"`
		NodeSelectors []labelSelector   `json:"nodeSelectors"`

		ReceiveInterval  uint32 `json:"receiveInterval"`
		TransmitInterval uint32 `json:"transmitInterval"`
		DetectMultiplier uint32 `json:"detectMultiplier"`
	} `json:"spec"`
}

type labelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions"`
}

// keepMetalLB keeps an object of MetalLB: Calico and Cilium have the same kinds. It is decoded
// by metalLBRouters, as Observe has no use for it.
func (i *importer) keepMetalLB(doc *source.Document, h header) {
	if strings.HasPrefix(h.APIVersion, "metallb.io/") {
		i.metallb = append(i.metallb, &metalLB{header: h, doc: doc})
	}
}

func (o *metalLB) at(field string) Place { return position(o.doc, field) }

// loseSet loses a field that has another value than the usual one, and reports whether it has.
// The value is not decoded.
func (i *importer) loseSet(o *metalLB, field, usual, what, instead string) bool {
	if text := o.doc.Text("spec." + field); text == "" || text == usual {
		return false
	}
	i.lose(o.at("spec."+field), what, instead)
	return true
}

// metalLBRouters returns the routers of all BGPPeers. MetalLB has checked their values, and vipgen
// does once they are no comment.
func (i *importer) metalLBRouters() *v1alpha1.BGP {
	b, ok := &v1alpha1.BGP{}, true
	for _, o := range i.metallb {
		o.Spec.ReceiveInterval, o.Spec.TransmitInterval, o.Spec.DetectMultiplier = 300, 300, 3 // MetalLB's defaults
		ok = i.decode(o.doc, o) && ok
	}
	if !ok {
		return b
	}
	for _, o := range i.metallb {
		if o.Kind == "BGPAdvertisement" && o.doc.Has("spec.communities") {
			i.lose(o.at("spec.communities"), "communities of MetalLB's Services", "none: spec.bgp.communities gives VIPs some, if routers want them")
		}
		if o.Kind != "BGPPeer" {
			continue
		}
		if name := cmp.Or(o.Spec.Interface, o.Spec.Address.Unmap().String()); slices.ContainsFunc(b.Peers, func(p v1alpha1.BGPPeer) bool { return p.Name() == name }) {
			i.lose(o.at("spec.peerAddress"), "another BGPPeer of the router "+name, "one entry for each router: compare its settings and nodes")
		} else if p, ok := i.router(o); ok {
			b.LocalASN = cmp.Or(b.LocalASN, p.LocalASN)
			if p.LocalASN == b.LocalASN {
				p.LocalASN = 0
			}
			b.Peers = append(b.Peers, p)
			i.lose(o.at("metadata.name"), "MetalLB's sessions with its routers",
				"sessions of its own once it announces VIPs by BGP, and a router keeps one with each address of a node. Before that give MetalLB's BGPPeers other routers, or nodeSelectors for nodes without vipgen's; or leave BGP to a speaker that takes vipgen's routes (announce: table)")
		}
	}
	for _, n := range i.seen { // MetalLB often announces from compute nodes alone
		if len(b.Peers) > 0 && i.nodes[v1alpha1.RoleMaster][n.Name] && len(b.PeersOf(n.Name, nil)) == 0 {
			i.lose(n.at, "a router for the control-plane node "+shown(n.Name), "no announcement of API VIPs by it: add it to nodes of a router")
		}
	}
	return b
}

// router returns a router, with the AS number of the nodes, unless there can be no session.
func (i *importer) router(o *metalLB) (p v1alpha1.BGPPeer, ok bool) {
	s := &o.Spec
	const none = "no session with it: "
	if i.loseSet(o, "vrf", "", "a router in a VRF", none+"it has none in VRFs") ||
		i.loseSet(o, "dynamicASN", "internal", "a router of any other AS", none+"add it with its AS number") {
		return p, false
	}
	p = v1alpha1.BGPPeer{Address: s.Address.Unmap(), Interface: s.Interface, ASN: s.ASN, LocalASN: cmp.Or(s.LocalASN, s.MyASN), HoldTime: cmp.Or(s.HoldTime, 3*s.KeepaliveTime)}
	if !i.routerNodes(o, &p) {
		return p, false
	}
	i.loseSet(o, "peerPort", "179", "another TCP port of a router", "port 179")
	i.loseSet(o, "sourceAddress", "", "the source address of sessions", "the node's address in the direction of the router")
	i.loseSet(o, "routerID", "", "the router ID of nodes", "the node's first IPv4 address")
	i.loseSet(o, "enableGracefulRestart", "false", "graceful restart", "none: routers would keep routes to a dead node")
	if p.Interface == "" { // such sessions have both
		i.loseSet(o, "dualStackAddressFamily", "false", "routes of both address families in a session", "those of the router's address: add the router's other address")
	}
	if s.DynamicASN != "" {
		p.ASN = s.MyASN // whatever localASN is
	}
	if s.EBGPMultiHop {
		p.Multihop = 255
	}
	for _, field := range []string{"password", "passwordSecret.name"} {
		if o.doc.Text("spec."+field) != "" {
			p.PasswordFile = v1alpha1.BGPPasswordFile(p.Name())
			i.losePasswordFile(o.at("spec."+field), p.PasswordFile)
		}
	}
	if p.HoldTime == 0 {
		i.assume("hold time of "+p.Name(), v1alpha1.BGPHoldTime.String(), "the BGPPeer has none, and this is vipgen's default; the shorter one of both sides counts")
	}
	p.HoldTime = v1alpha1.Duration(time.Duration(p.HoldTime).Truncate(time.Second)) // as MetalLB does
	i.routerBFD(o, &p)
	i.carryRouter(&p, o.at("spec.peerAddress"))
	return p, true
}

func (i *importer) routerBFD(o *metalLB, p *v1alpha1.BGPPeer) {
	on := o.Spec.BFDProfile != ""
	if p.BFD.Enabled = &on; !on {
		return
	}
	f := o // has MetalLB's defaults
	n := slices.IndexFunc(i.metallb, func(f *metalLB) bool { return f.Kind == "BFDProfile" && f.Metadata.Name == o.Spec.BFDProfile })
	if n >= 0 {
		f = i.metallb[n]
	} else {
		i.assume("BFD of "+p.Name(), "300ms, 3 packets", "MetalLB's default, as the source does not have the BFDProfile")
	}
	if f.Spec.ReceiveInterval != f.Spec.TransmitInterval {
		i.lose(f.at("spec"), "different BFD intervals of both directions", "the longer one for both")
	}
	i.loseSet(f, "echoMode", "false", "echo mode of BFD", "none")
	i.loseSet(f, "passiveMode", "false", "passive mode of BFD", "none")
	p.BFD.Interval = v1alpha1.Duration(v1alpha1.Millis(int(max(f.Spec.ReceiveInterval, f.Spec.TransmitInterval))))
	p.BFD.Multiplier = int(f.Spec.DetectMultiplier)
}

// routerNodes selects nodes by their names, and reports whether there are any.
func (i *importer) routerNodes(o *metalLB, p *v1alpha1.BGPPeer) bool {
	at, selectors := o.at("spec.nodeSelectors"), o.Spec.NodeSelectors
	if len(selectors) == 0 {
		return true
	}
	for _, n := range i.seen {
		if slices.ContainsFunc(selectors, func(s labelSelector) bool { return s.matches(n.labels) }) {
			p.Nodes.Names = lists.Add(p.Nodes.Names, n.Name)
		}
	}
	slices.Sort(p.Nodes.Names)
	switch len(p.Nodes.Names) {
	case len(i.seen):
		p.Nodes.Names = nil // new nodes, too
		if len(i.seen) == 0 {
			i.lose(at, "nodeSelectors, as the source has no Nodes", "a session of every node: import the Nodes too, or set nodes of the router")
		}
	case 0:
		i.lose(at, "the router "+p.Address.String()+", as nodeSelectors match none of the Nodes", "no session with it")
		return false
	default:
		i.lose(at, "nodeSelectors, which match new nodes as well", "the names of the Nodes that match now; nodes.subnets selects a rack's new nodes too")
	}
	return true
}

func (s *labelSelector) matches(labels map[string]string) bool {
	for k, v := range s.MatchLabels {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		have, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, have)
		if !map[string]bool{"In": in, "NotIn": !in, "Exists": ok, "DoesNotExist": !ok}[e.Operator] {
			return false
		}
	}
	return true
}
