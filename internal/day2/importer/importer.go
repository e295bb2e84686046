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
	"github.com/vipgen/vipgen/render"
)

// Given is what a command line says where the source does not, or wins over it.
// Empty fields are not given.
type Given struct {
	ClusterName     string
	BaseDomain      string
	MachineNetworks []netip.Prefix
	Mode            v1alpha1.Mode
	AgentImage      string
	// DisruptionPolicy asks for vipgen's node disruption policy.
	DisruptionPolicy bool
}

// Place is where something stands. A file inside of a MachineConfig is named
// FILE#MACHINECONFIG:PATH, and Line counts in that file.
type Place struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Fact is something that the input made of the source says.
type Fact struct {
	// What names it: "API VIPs".
	What string `json:"what"`
	// Value is what it is, as text.
	Value string `json:"value"`
	// Place is where the source says it; empty where it is given or assumed.
	Place
	// Why says what an assumption rests on.
	Why string `json:"why,omitempty"`
}

// Loss is something of the source that the input does not say.
type Loss struct {
	// What stands in the source, without any text of it that may be a secret.
	What string `json:"what"`
	// Instead is what vipgen does.
	Instead string `json:"instead"`
	// Apart says that a node which has it does not hear the adverts of one that
	// runs what vipgen renders, so that both hold the VIP.
	Apart bool `json:"apart,omitempty"`
	// Places are where it stands, in the order of the files.
	Places []Place `json:"places"`
}

// Result is what came of a source.
type Result struct {
	// Domain is that of the cluster, "<name>.<base domain>".
	Domain string `json:"cluster"`
	// Carried is what the source says and the input says, too.
	Carried []Fact `json:"carried"`
	// Assumed is what the source does not say.
	Assumed []Fact `json:"assumed"`
	// Lost is what the source says and the input does not.
	Lost []Loss `json:"notCarriedOver"`
	// InstallConfig and VIPConfig are the input.
	InstallConfig []byte `json:"-"`
	VIPConfig     []byte `json:"-"`
}

// Read makes input of the files of one cluster. The list has every problem and
// warning; the result is nil if one of them is an error. What it returns has been
// read and resolved as `vipgen render` does.
func Read(files []render.File, given Given) (*Result, problem.List) {
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
			// What is missing may stand in what could not be read.
			i.list = slices.DeleteFunc(i.list, func(p problem.Problem) bool { return p.File == "" })
		}
	}
	i.list.Sort()
	if i.list.Err() != nil {
		return nil, i.list
	}
	return result, i.list
}

// importer carries what was found through one Read.
type importer struct {
	given Given
	list  problem.List
	// found says that something of a cluster was there.
	found   bool
	configs ignition.Decoder
	evidence
	result Result
	lost   map[[2]string]int // What and Instead -> index in result.Lost
}

// evidence is what the files claim, each with its place.
type evidence struct {
	platform, domain, name           claims[string]
	api, ingress, dns                claims[[]netip.Addr]
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
	upstreams                        claims[[]netip.Addr]
	hostLines                        claims[hostLine]
	hostNetworks                     claims[netip.Prefix] // of nodes
	vipNetworks                      claims[netip.Prefix] // as keepalived has them on VIPs
	confs                            []*keepalivedConf
	nodes                            map[string]map[string]bool // role -> names
	seen                             []Node
	keepalivedRuns                   bool // its manifest is not switched off
	keepalivedPod                    bool
}

// add reports a problem; an error unless it says otherwise.
func (i *importer) add(p problem.Problem) {
	p.Severity = cmp.Or(p.Severity, problem.Error)
	if p.Line > 0 {
		p.Column = max(p.Column, 1)
	}
	i.list = append(i.list, p)
}

// apart is lose for what keeps nodes from hearing each other.
func (i *importer) apart(at Place, what, instead string) {
	i.lose(at, what, instead)
	i.result.Lost[i.lost[[2]string{what, instead}]].Apart = true
}

// lose notes something that the input cannot say, once however often it stands.
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
	if !slices.Contains(l.Places, at) {
		l.Places = append(l.Places, at)
	}
}

func (i *importer) carry(what, value string, at Place) {
	i.result.Carried = append(i.result.Carried, Fact{What: what, Value: value, Place: at})
}

func (i *importer) assume(what, value, why string) {
	i.result.Assumed = append(i.result.Assumed, Fact{What: what, Value: value, Why: why})
}

// String is the place as reports name it.
func (p Place) String() string {
	switch {
	case p.File == "":
		return "the command line"
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// compare orders places as one reads them.
func (p Place) compare(q Place) int {
	return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line))
}
