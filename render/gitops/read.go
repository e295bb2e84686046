package gitops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// Cluster is what the objects of one cluster stand for.
type Cluster struct {
	Install *installconfig.InstallConfig
	// Agent has the nodes.
	Agent *installconfig.AgentConfig
	// Manifests is where the cluster's extra manifests come from.
	Manifests ManifestRefs
}

// ManifestRefs are the ConfigMaps with manifests that an object names, or the folders that
// a SiteConfig does.
type ManifestRefs struct {
	// Folders is set where these are folders.
	Folders bool
	// Namespace is where the ConfigMaps are.
	Namespace string
	Names     []string
	// Doc and Field are where they stand, or would stand.
	Doc   *source.Document
	Field string
}

// Read reads the cluster of a name in a file, or its only one where the name is
// empty. Of other files it takes the objects that belong to an
// AgentClusterInstall. It reports every problem; the cluster is nil where there
// is none to be found.
func Read(file source.File, name string, others []source.File) (*Cluster, problem.List) {
	docs, list := source.ParseWritten(file.Name, file.Data)
	if len(list) > 0 {
		return nil, list
	}
	all := clusters(docs)
	if len(all) == 0 { // they are a part of another object, as of a Template
		if list := Instead(file); list != nil {
			return nil, list
		}
	}
	o, list := choose(file.Name, name, all)
	if o == nil {
		return nil, list
	}
	return read(o, docs, others)
}

func read(o *object, docs []*source.Document, others []source.File) (*Cluster, problem.List) {
	r := &reader{main: o.doc, spec: o.spec, install: source.NewView(o.doc, o.spec), agent: source.NewView(o.doc, o.spec)}
	r.version(o.doc)
	switch o.kind {
	case kindClusterInstance:
		r.clusterInstance()
	case kindSiteConfig:
		if o.doc.Len(siteClusters) == 0 {
			return nil, r.noSiteClusters()
		}
		r.siteConfig()
	case kindAgentClusterInstall:
		for _, f := range others {
			more, problems := source.ParseWritten(f.Name, f.Data)
			docs, r.problems = append(docs, more...), append(r.problems, problems...)
			r.unread = r.unread || len(problems) > 0
		}
		r.agentClusterInstall(docs)
	}
	return r.cluster(), r.report()
}

// reader gathers what objects say about one cluster.
type reader struct {
	main *source.Document
	// spec is where the fields of the cluster are in it.
	spec string
	// machineNetwork is where the networks of the nodes are, or would be.
	machineNetwork string
	install, agent *source.View
	hosts          int
	nodes          *installconfig.AgentConfig
	manifests      ManifestRefs
	// unread is set where a file with more objects could not be read.
	unread   bool
	problems problem.List
}

// cluster reads what the views show.
func (r *reader) cluster() *Cluster {
	c := &Cluster{Manifests: r.manifests}
	r.install.Put("apiVersion", "v1", r.main, "apiVersion")
	r.agent.Put("apiVersion", "v1beta1", r.main, "apiVersion")
	r.agent.Put("kind", "AgentConfig", r.main, "kind")
	var install, agent problem.List
	c.Agent, agent = installconfig.ReadAgentDocument(r.agent.Document())
	r.nodes = c.Agent
	given := r.machineNetworks()
	c.Install, install = installconfig.ReadDocument(r.install.Document())
	if !given {
		c.Install.MachineNetworks = nil
	}
	r.problems = append(append(r.problems, install...), agent...)
	return c
}

func (r *reader) report() problem.List {
	r.problems.Sort()
	return r.problems
}

func (r *reader) add(d *source.Document, code problem.Code, field, found, expected, hint string) {
	r.addAs("", d, code, field, found, expected, hint)
}

// addAs is add for a field that stands for one of the install-config, so that what
// follows from it there is not reported.
func (r *reader) addAs(key string, d *source.Document, code problem.Code, field, found, expected, hint string) {
	r.problems = append(r.problems, d.Locate(problem.List{{Severity: problem.Error, Code: code, Key: key,
		Field: field, Found: found, Expected: expected, Hint: hint}})...)
}

// version checks the apiVersion of an object.
func (r *reader) version(d *source.Document) {
	want := known(d.Text("kind")).version
	switch got := d.Text("apiVersion"); got {
	case want:
	case "":
		r.add(d, problem.MissingField, "apiVersion", "nothing", problem.Quote(want), "")
	default:
		r.add(d, problem.WrongKind, "apiVersion", problem.Quote(got), problem.Quote(want), "")
	}
}

// platform gives the cluster the platform that a field names; alone says that it
// has one control-plane node. Where the object leaves it to the assisted
// installer, that is none for a single node and for networking that is the
// user's, else bare metal.
func (r *reader) platform(field string, alone bool) {
	name := r.main.Text(field)
	platform := assets.PlatformWhere(func(p assets.Platform) bool { return p.Assisted == name && name != "" }).Name
	const userManaged = "spec.networking.userManagedNetworking"
	switch {
	case platform != "":
	case name != "":
		r.addAs("platform", r.main, problem.BadValue, field, problem.Quote(name), "BareMetal, VSphere, Nutanix, None or External", "")
		r.install.Empty("platform.none", r.main, field)
		return
	case strings.EqualFold(r.main.Text(userManaged), "true"), alone && r.main.Len(r.spec+".apiVIPs") == 0 && r.main.Text(r.spec+".apiVIP") == "":
		platform = "none"
	default:
		platform = "baremetal"
	}
	at := "platform." + platform
	r.install.Empty(at, r.main, field)
	if assets.PlatformNamed(platform).Bare() {
		r.noVIPs(platform)
		return
	}
	for _, vips := range []string{"apiVIPs", "apiVIP", "ingressVIPs", "ingressVIP"} {
		r.install.Take(at+"."+vips, r.main, r.spec+"."+vips)
	}
}

// noVIPs: these platforms have no VIPs in an install-config. Assisted installs
// refuse them too.
func (r *reader) noVIPs(platform string) {
	for _, name := range []string{"apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP"} {
		field := r.spec + "." + name
		if r.main.Len(field) > 0 || r.main.Text(field) != "" {
			r.add(r.main, problem.ConflictingFields, field, "VIPs on platform "+platform, "no VIPs here",
				"an installation refuses them: give them in vipgen.yaml, as spec.apiVIPs and spec.ingressVIPs")
		}
	}
}

// pools gives the cluster the counts of its nodes, which follow from a field of
// each pool. What could not be read leaves the installer's defaults.
func (r *reader) pools(masters, workers, arbiters int, masterField, workerField, arbiterField string) {
	if slices.ContainsFunc(r.problems, func(p problem.Problem) bool { return p.Field == masterField && p.Code == problem.WrongType }) {
		return
	}
	r.install.Put("controlPlane.name", "master", r.main, masterField)
	r.install.Put("controlPlane.replicas", fmt.Sprint(masters), r.main, masterField)
	r.install.Put("compute[0].name", "worker", r.main, workerField)
	r.install.Put("compute[0].replicas", fmt.Sprint(workers), r.main, workerField)
	if arbiters > 0 {
		r.install.Put("arbiter.name", "arbiter", r.main, arbiterField)
		r.install.Put("arbiter.replicas", fmt.Sprint(arbiters), r.main, arbiterField)
	}
}

// host begins the next host of the agent-config, which stands at a path of an
// object, and returns its field.
func (r *reader) host(d *source.Document, path string) string {
	field := fmt.Sprintf("hosts[%d]", r.hosts)
	r.agent.Empty(field, d, path)
	r.hosts++
	return field
}
