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

// Cluster is the install-config and agent-config that the objects of one cluster describe.
type Cluster struct {
	Install *installconfig.InstallConfig
	// Agent holds the nodes.
	Agent *installconfig.AgentConfig
	// Manifests are the sources of the cluster's extra manifests.
	Manifests ManifestRefs
}

// ManifestRefs are the ConfigMaps, or in a SiteConfig the folders, that an object names for
// manifests.
type ManifestRefs struct {
	// Folders is set for folders.
	Folders bool
	// Namespace is the namespace of the ConfigMaps.
	Namespace string
	Names     []string
	// Doc and Field are the source of the references, or the place for them.
	Doc   *source.Document
	Field string
}

// Read reads the cluster with a name from a file, or its only one where the name is empty. From
// other files it takes the objects that belong to an AgentClusterInstall. It reports every
// problem; the cluster is nil where none was found.
func Read(file source.File, name string, others []source.File) (*Cluster, problem.List) {
	docs, list := source.ParseWritten(file.Name, file.Data)
	if len(list) > 0 {
		return nil, list
	}
	all := clusters(docs)
	if len(all) == 0 { // part of another object, such as a Template
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

type reader struct {
	main *source.Document
	// path of the cluster's fields in main
	spec string
	// path of the nodes' networks, also where it is missing
	machineNetwork string
	install, agent *source.View
	hosts          int
	nodes          *installconfig.AgentConfig
	manifests      ManifestRefs
	// unread is set where another file could not be parsed.
	unread   bool
	problems problem.List
}

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

// addAs is add with the install-config's field as key, so that consequences there are not
// reported.
func (r *reader) addAs(key string, d *source.Document, code problem.Code, field, found, expected, hint string) {
	r.problems = append(r.problems, d.Locate(problem.List{{Severity: problem.Error, Code: code, Key: key,
		Field: field, Found: found, Expected: expected, Hint: hint}})...)
}

func (r *reader) version(d *source.Document) {
	want := kindNamed(d.Text("kind")).version
	switch got := d.Text("apiVersion"); got {
	case want:
	case "":
		r.add(d, problem.MissingField, "apiVersion", "nothing", problem.Quote(want), "")
	default:
		r.add(d, problem.WrongKind, "apiVersion", problem.Quote(got), problem.Quote(want), "")
	}
}

// platform sets the platform that a field names; alone is set for one control-plane node. Where
// the object leaves it to the assisted installer, that is none for a single node and for
// user-managed networking, else bare metal.
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
		r.install.Copy(at+"."+vips, r.main, r.spec+"."+vips)
	}
}

// noVIPs reports VIPs on a platform without them; assisted installs refuse them too.
func (r *reader) noVIPs(platform string) {
	for _, name := range []string{"apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP"} {
		field := r.spec + "." + name
		if r.main.Len(field) > 0 || r.main.Text(field) != "" {
			r.add(r.main, problem.ConflictingFields, field, "VIPs on platform "+platform, "no VIPs here",
				"an installation refuses them: give them in vipgen.yaml, as spec.apiVIPs and spec.ingressVIPs")
		}
	}
}

// pools sets the number of nodes of each pool, each derived from a field. Unreadable numbers
// leave the installer's defaults.
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

// host starts the next host of the agent-config, read from a path of an object, and returns its
// field.
func (r *reader) host(d *source.Document, path string) string {
	field := fmt.Sprintf("hosts[%d]", r.hosts)
	r.agent.Empty(field, d, path)
	r.hosts++
	return field
}
