package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// Given are the settings of a command line that add to the source or override it. Empty fields
// are not given.
type Given struct {
	ClusterName     string
	BaseDomain      string
	MachineNetworks []netip.Prefix
	Mode            v1alpha1.Mode
	AgentImage      string
	// DisruptionPolicy adds vipgen's node disruption policy.
	DisruptionPolicy bool
}

// Place is a position. A file in a MachineConfig is named FILE#MACHINECONFIG:PATH, and Line
// counts in that file.
type Place struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Fact is a fact in the written input.
type Fact struct {
	// What names it: "API VIPs".
	What string `json:"what"`
	// Value is its value, as text.
	Value string `json:"value"`
	// Place is its source; empty where it is given or assumed.
	Place
	// Why is the reason for an assumption.
	Why string `json:"why,omitempty"`
}

// Loss is a part of the source that the input lacks.
type Loss struct {
	// What describes it, without text that may be a secret.
	What string `json:"what"`
	// Instead describes vipgen's behaviour without it.
	Instead string `json:"instead"`
	// Apart is set where a node with it does not receive the adverts of one that runs vipgen's
	// output, so that both hold the VIP.
	Apart bool `json:"apart,omitempty"`
	// Places are its positions, in the order of the files.
	Places []Place `json:"places"`
}

// Result is the result of an import.
type Result struct {
	// Domain is the cluster's, "<name>.<base domain>".
	Domain string `json:"cluster"`
	// Carried are the facts of the source that the input has.
	Carried []Fact `json:"carried"`
	// Assumed are facts that the source lacks.
	Assumed []Fact `json:"assumed"`
	// Lost are the parts of the source that the input lacks.
	Lost []Loss `json:"notCarriedOver"`
	// InstallConfig and VIPConfig are the input.
	InstallConfig []byte `json:"-"`
	VIPConfig     []byte `json:"-"`
}

// Read imports the files of one cluster. The list has every problem and warning; the result is
// nil if one of them is an error. The returned input has been read and resolved as `vipgen
// render` does.
func Read(files []render.File, given Given) (*Result, problem.List) {
	return read(newFiles(files), given)
}

func read(files []*file, given Given) (*Result, problem.List) {
	i := &importer{given: given, evidence: evidence{images: map[string]claims[string]{}}}
	i.collect(files)
	if i.list.Err() == nil && !i.found {
		i.add(problem.Problem{Code: problem.MissingField, Found: "nothing of a cluster",
			Expected: "node files, a must-gather, or exported MachineConfigs with the ControllerConfig or the Infrastructure", Hint: "'vipgen import --help' says how to export them"})
	}
	var result *Result
	if i.found {
		broken := i.list.Err() != nil
		result = i.settle()
		if broken {
			// The missing facts may be in an unreadable file.
			i.list = slices.DeleteFunc(i.list, func(p problem.Problem) bool { return p.File == "" })
		}
	}
	i.list.Sort()
	if i.list.Err() != nil {
		return nil, i.list
	}
	return result, i.list
}

type importer struct {
	given Given
	list  problem.List
	// found is set once any part of a cluster was found.
	found   bool
	configs ignition.Decoder
	evidence
	result Result
	// routers are MetalLB's, which vipgen.yaml has as a comment.
	routers *v1alpha1.BGP
	lost    map[[2]string]int // What and Instead -> index in result.Lost
}

type evidence struct {
	platform, domain, name           claims[string]
	api, ingress                     claims[[]netip.Addr]
	machineNetworks                  claims[[]netip.Prefix]
	clusterNetworks, serviceNetworks claims[[]netip.Prefix]
	hostPrefixes                     map[netip.Prefix]int // of cluster networks
	networkType, topology, version   claims[string]
	routes, appsDomain               claims[string] // domains of the cluster's Ingress object
	external, externalDNS            claims[bool]
	masters, arbiters, workers       claims[int]
	pools                            claims[string]
	mode                             claims[v1alpha1.Mode]
	flag                             claims[v1alpha1.Mode] // ENABLE_UNICAST
	images                           map[string]claims[string]
	apiPorts, routerPorts            claims[int]
	hostNetworks                     claims[netip.Prefix] // of nodes
	vipNetworks                      claims[netip.Prefix] // of VIPs in keepalived.conf
	confs                            []*keepalivedConf
	nodes                            map[string]map[string]bool // role -> names
	seen                             []Node
	keepalivedRuns                   bool // its manifest is not disabled
	keepalivedPod                    bool
	metallb                          []*metalLB
	preview                          *installconfig.InstallConfig // with bgpVIPConfig
	routersNow                       *source.Document             // config.json of bgp-vip-config
	managed                          Place                        // vipManagement: BGP
}

// add reports a problem, by default an error.
func (i *importer) add(p problem.Problem) {
	p.Severity = cmp.Or(p.Severity, problem.Error)
	if p.Line > 0 {
		p.Column = max(p.Column, 1)
	}
	i.list = append(i.list, p)
}

// loseApart is lose for settings that keep nodes from receiving each other's adverts.
func (i *importer) loseApart(at Place, what, instead string) {
	i.lose(at, what, instead)
	i.result.Lost[i.lost[[2]string{what, instead}]].Apart = true
}

// lose records a part that the input cannot express, once for all its places.
func (i *importer) lose(at Place, what, instead string) {
	key := [2]string{what, instead}
	n, known := i.lost[key]
	if !known {
		if i.lost == nil {
			i.lost = map[[2]string]int{}
		}
		n = len(i.result.Lost)
		i.lost[key] = n
		i.result.Lost = append(i.result.Lost, Loss{What: what, Instead: instead})
	}
	l := &i.result.Lost[n]
	l.Places = lists.Add(l.Places, at)
}

func (i *importer) carry(what, value string, at Place) {
	i.result.Carried = append(i.result.Carried, Fact{What: what, Value: value, Place: at})
}

func (i *importer) assume(what, value, why string) {
	i.result.Assumed = append(i.result.Assumed, Fact{What: what, Value: value, Why: why})
}

// String returns the place in the form of reports.
func (p Place) String() string {
	switch {
	case p.File == "":
		return "the command line"
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

func (p Place) compare(q Place) int {
	return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line))
}
