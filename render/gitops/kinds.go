package gitops

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/source"
)

// The kinds that vipgen reads.
const (
	kindClusterInstance     = "ClusterInstance"
	kindAgentClusterInstall = "AgentClusterInstall"
	kindSiteConfig          = "SiteConfig"
	clusterDeployment       = "ClusterDeployment"
	nmStateConfig           = "NMStateConfig"
	infraEnv                = "InfraEnv"
	bareMetalHost           = "BareMetalHost"
	agentConfig             = "AgentConfig"
)

type kind struct {
	name string
	// version is the API version that vipgen reads.
	version string
	// cluster: describes clusters; companion: belongs to an AgentClusterInstall
	cluster, companion bool
	// expected and hint are the report on a file with this kind and none that describes a
	// cluster.
	expected, hint string
}

const (
	nodesOfItsOwn  = "a cluster with control-plane nodes of its own"
	hosted         = "a hosted control plane has no VIPs that its nodes could hold; its API is a Service of the hosting cluster, to which MetalLB or a node port leads"
	withCompanions = "the AgentClusterInstall that it belongs to, in the same file or folder"
	nextToIt       = "the install-config that it goes with"
	exported       = "'vipgen import' makes one of the objects of a running cluster"
)

// kinds are the kinds that vipgen knows. Of several in a file or folder, the advice of the
// first here is reported.
var kinds = []kind{
	{name: kindClusterInstance, version: "siteconfig.open-cluster-management.io/v1alpha1", cluster: true},
	{name: kindAgentClusterInstall, version: "extensions.hive.openshift.io/v1beta1", cluster: true},
	{name: kindSiteConfig, version: "ran.openshift.io/v1", cluster: true},
	{name: "HostedCluster", expected: nodesOfItsOwn, hint: hosted},
	{name: "HostedControlPlane", expected: nodesOfItsOwn, hint: hosted},
	{name: "NodePool", expected: nodesOfItsOwn, hint: hosted},
	{name: "Template", expected: "the objects that it makes", hint: "give the output of 'oc process'"},
	{name: "ImageClusterInstall", expected: "the ClusterInstance that it comes from, or an install-config"},
	{name: clusterDeployment, version: "hive.openshift.io/v1", companion: true, expected: "its AgentClusterInstall, in the same file or folder",
		hint: "for a ClusterDeployment without one, give the install-config in the Secret of spec.provisioning.installConfigSecretRef"},
	{name: infraEnv, version: "agent-install.openshift.io/v1beta1", companion: true, expected: withCompanions},
	{name: nmStateConfig, version: "agent-install.openshift.io/v1beta1", companion: true, expected: withCompanions},
	{name: "Provisioning", expected: "an install-config", hint: "a Provisioning has the network that hosts start from, and no VIPs"},
	{name: bareMetalHost, version: "metal3.io/v1alpha1", companion: true, expected: "the install-config, or the AgentClusterInstall, of the cluster that the host is in"},
	{name: agentConfig, expected: nextToIt, hint: "an agent-config.yaml next to that is read too"},
	{name: v1alpha1.KindVIPConfig, expected: nextToIt, hint: "a vipgen.yaml next to that is read too"},
	{name: "Infrastructure", expected: "an install-config", hint: exported},
	{name: "MachineConfig", expected: "an install-config", hint: exported},
}

// kindNamed returns the kind with a name, or the zero value.
func kindNamed(name string) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}
	}
	return kinds[i]
}

func kindsWhere(which func(kind) bool) (out []kind) {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !which(k) })
}

func describesClusters(k kind) bool { return k.cluster }

// lineOf returns a pattern for lines with one of the selected kinds.
func lineOf(which func(kind) bool) func() *regexp.Regexp {
	names := lists.Map(kindsWhere(which), func(k kind) string { return k.name })
	return lazy.Regexp(`(?m)^[ \t"{-]*kind"?:[ \t]*["']?(?:` + strings.Join(names, "|") + `)["']?[ \t,}]*(?:#.*)?\r?$`)
}

// groups returns a pattern for the API groups of the kinds that describe clusters.
func groups() string {
	return strings.Join(lists.Map(kindsWhere(describesClusters), func(k kind) string {
		group, _, _ := strings.Cut(k.version, "/")
		return regexp.QuoteMeta(group)
	}), "|")
}

// described lists the kinds that describe clusters.
func described(before string) string {
	return before + strings.Join(lists.Map(kindsWhere(describesClusters), func(k kind) string { return k.name }), ", "+before)
}

type found struct {
	kind         string
	line, column int
	// install: may be an install-config with a kind
	install bool
}

// Instead returns the advice for files with objects of which none describes a cluster, and
// nothing for a file that may be an install-config.
func Instead(files ...source.File) problem.List {
	best, out := len(kinds)+1, problem.List(nil)
	for _, f := range files {
		if rank, p := instead(f); p != nil && rank < best {
			best, out = rank, problem.List{*p}
		}
	}
	return out
}

// instead is Instead for one file. It returns the kind's index in kinds, or their number.
func instead(file source.File) (int, *problem.Problem) {
	all := objectsIn(file)
	if len(all) == 0 {
		return 0, nil
	}
	best, rank := all[0], len(kinds)
	for _, f := range all {
		if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.kind && !k.cluster }); i >= 0 && i < rank {
			best, rank = f, i
		}
	}
	p := problem.Problem{File: file.Name, Line: best.line, Column: best.column, Severity: problem.Error, Code: problem.WrongKind, Field: "kind",
		Found: problem.Quote(best.kind), Expected: "an object that describes a cluster", Hint: "one of " + described("") + ", or an install-config in a file of its own"}
	switch {
	case rank < len(kinds):
		p.Expected, p.Hint = kinds[rank].expected, kinds[rank].hint
	case len(all) == 1 && best.install:
		return 0, nil
	}
	return rank, &p
}

var (
	marker  = lazy.Regexp(`(?m)^---(?:[ \t\r]|$)`)
	comment = lazy.Regexp(`(?m)^[ \t]*(?:#.*)?\r?$`)
)

// objectsIn returns the kinds of the objects in a file; nil where one of its documents has
// none, like an install-config. A file that is not YAML is searched as text.
func objectsIn(file source.File) []found {
	if !anyKind().Match(file.Data) && !bytes.Contains(file.Data, []byte(`"kind"`)) && !bytes.Contains(file.Data, []byte("rendezvousIP")) {
		return nil
	}
	docs, list := source.ParseAll(file.Name, file.Data)
	if len(list) > 0 {
		return kindsInText(file.Data)
	}
	var out []found
	for _, d := range docs {
		f := found{kind: d.Text("kind"), install: d.Has("platform") || d.Has("baseDomain")}
		if f.kind == "" && d.Has("rendezvousIP") { // an agent-config may lack the kind
			f.kind = agentConfig
		}
		if f.kind == "" || f.kind == installConfig {
			return nil
		}
		f.line, f.column = d.Position("kind")
		out = append(out, f)
	}
	return out
}

func kindsInText(data []byte) []found {
	var out []found
	marks := append(append([][]int{{0, 0}}, marker().FindAllIndex(data, -1)...), []int{len(data)})
	for i, m := range marks[:len(marks)-1] {
		text := data[m[1]:marks[i+1][0]]
		at := anyKind().FindSubmatchIndex(text)
		switch {
		case at != nil && string(text[at[2]:at[3]]) != installConfig:
			before := data[:m[1]+at[2]]
			out = append(out, found{string(text[at[2]:at[3]]), bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n'), true})
		case len(bytes.TrimSpace(comment().ReplaceAll(text, nil))) > 0:
			return nil
		}
	}
	return out
}
