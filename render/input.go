// Package render turns an install-config and the files that go with it into the ClusterConfig
// of the nodes and the files of every pool. It touches no disk, network or clock.
package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// File is an input with its name in reports.
type File = source.File

// Sources are the files that describe one cluster.
type Sources struct {
	// InstallConfig is an install-config, or a file with objects that describe
	// clusters as package gitops reads them.
	InstallConfig File
	// Object is the name of the cluster in a file with several; Companions are files that may
	// hold more objects of an AgentClusterInstall.
	Object     string
	Companions []File
	// AgentConfig and VIPConfig are optional.
	AgentConfig *File
	VIPConfig   *File
	// ClusterIngress is the cluster's Ingress object, where it differs from the installer's
	// default, or nil.
	ClusterIngress *File
	// Defaults holds the defaults of the cluster's fleet, or nil.
	Defaults *Defaults
}

// Names returns the names of the files, the install-config first.
func (s Sources) Names() []string {
	names := []string{s.InstallConfig.Name}
	for _, f := range []*File{s.VIPConfig, s.AgentConfig, s.ClusterIngress} {
		if f != nil {
			names = append(names, f.Name)
		}
	}
	names = append(names, lists.Map(s.Companions, func(f File) string { return f.Name })...)
	if s.Defaults != nil && s.Defaults.doc != nil {
		names = append(names, s.Defaults.doc.File)
	}
	return names
}

// Options are the settings of a cluster that a command line has.
type Options struct {
	// OpenShiftVersion overrides the VIPConfig's.
	OpenShiftVersion string
	// OS is the operating system of the nodes, as ignition.ParseTarget knows it;
	// empty means OpenShift's.
	OS string
	// Release holds version and images where no input has them.
	Release *Release
}

// Input is the content of Sources, each file valid by itself.
type Input struct {
	Install *installconfig.InstallConfig
	Agent   *installconfig.AgentConfig
	VIP     *v1alpha1.VIPConfig
	// Ingress is the cluster's Ingress object, or nil.
	Ingress *installconfig.ClusterIngress
	// Manifests are the ConfigMaps that the cluster's object names; nil for an install-config.
	Manifests *gitops.ManifestRefs
	// vipDocs are the documents of VIP's fields.
	vipDocs layers
	// givenProfile is set where the user chose the profile of VIP.
	givenProfile bool
	// assumedNone is set where type None is vipgen's choice, as nothing gives the cluster VIPs.
	assumedNone bool
	// bgpTaken is set where the routers are those of bgpVIPConfig.
	bgpTaken bool
}

// Read reads all files of a cluster and returns the problems of all of them, which Report or
// Load merges into a report. Values with a problem are missing from the input. It is nil where
// a file is unreadable: the list is a report then.
func Read(s Sources) (*Input, problem.List) {
	in, list := readCluster(s)
	if s.AgentConfig != nil {
		agent, more := installconfig.ReadAgentConfig(s.AgentConfig.Name, s.AgentConfig.Data)
		in.Agent, list = agent, append(list, more...)
	}
	if s.ClusterIngress != nil {
		ingress, more := installconfig.ReadClusterIngress(s.ClusterIngress.Name, s.ClusterIngress.Data)
		in.Ingress, list = ingress, append(list, more...)
	}
	more, ok := in.readVIPConfig(s.VIPConfig, s.Defaults)
	list = append(list, more...)
	if s.Defaults != nil {
		list = append(list, s.Defaults.warnings...)
	}
	list.Sort()
	if in.Install == nil || s.AgentConfig != nil && in.Agent == nil || s.ClusterIngress != nil && in.Ingress == nil || !ok {
		return nil, in.Report(list)
	}
	return in, list
}

// readCluster reads the install-config, or the objects that describe the cluster.
func readCluster(s Sources) (*Input, problem.List) {
	if !gitops.HasCluster(s.InstallConfig.Data) {
		if list := gitops.Instead(s.InstallConfig); list != nil {
			return &Input{}, list
		}
		install, list := installconfig.Read(s.InstallConfig.Name, s.InstallConfig.Data)
		return &Input{Install: install}, list
	}
	c, list := gitops.Read(s.InstallConfig, s.Object, s.Companions)
	if c == nil {
		return &Input{}, list
	}
	return &Input{Install: c.Install, Agent: c.Agent, Manifests: &c.Manifests}, list
}

// readVIPConfig reads a cluster's VIPConfig over the defaults of its fleet. ok is false where
// the file is unreadable.
func (in *Input) readVIPConfig(f *File, d *Defaults) (list problem.List, ok bool) {
	in.VIP = d.start()
	var doc *source.Document
	var unread problem.List
	if f == nil {
		in.VIP.APIVersion, in.VIP.Kind = v1alpha1.APIVersion, v1alpha1.KindVIPConfig
	} else {
		if doc, list = source.Parse(f.Name, f.Data); list.Err() != nil {
			return list, false
		}
		unread = doc.DecodeStrict(in.VIP)
		list = append(list, unread...)
		ownProfile(&in.VIP.Spec.VRRP, doc)
	}
	in.vipDocs = layers{doc, d.document()}
	in.acceptBGP()
	for _, p := range in.VIP.Validate() {
		if !refused(unread, p.Field) {
			list = append(list, in.vipDocs.locate(p))
		}
	}
	in.chooseProfile()
	in.chooseLoadBalancer()
	in.VIP.Default()
	return list, true
}

// refused reports whether a field, a parent or a part of it has an error already: its value is
// unknown.
func refused(list problem.List, field string) bool {
	within := func(a, b string) bool {
		rest, ok := strings.CutPrefix(a, b)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return slices.ContainsFunc(list.Errors(), func(p problem.Problem) bool {
		return p.Path() == "" || within(field, p.Path()) || within(p.Path(), field)
	})
}

// version returns the OpenShift version to write for; empty means any.
func (in *Input) version(o Options) string {
	release := ""
	if o.Release != nil {
		release = minor(o.Release.Version)
	}
	return cmp.Or(o.OpenShiftVersion, in.VIP.Spec.OpenShiftVersion, release)
}

// Load reads and resolves the files of one cluster. The list holds every problem and warning;
// it is also the error when the cluster cannot be rendered.
func Load(s Sources, o Options) (*Cluster, problem.List, error) {
	in, list := Read(s)
	if in == nil {
		return nil, list, list.Err()
	}
	return in.Load(list, o)
}

// Load resolves an input that was read with the given problems. Their consequences are not
// reported.
func (in *Input) Load(list problem.List, o Options) (*Cluster, problem.List, error) {
	c, more := resolve(in, o)
	if broken := list.Errors(); len(broken) > 0 {
		c = nil
		more = slices.DeleteFunc(more, func(p problem.Problem) bool { return isConsequence(p, broken) })
	}
	list = in.Report(append(list, more...))
	return c, list, list.Err()
}

// Locate fills in the position of a problem's field: in the VIPConfig if it begins with
// "spec.", else in the install-config. Flags have none.
func (in *Input) Locate(p problem.Problem) problem.Problem {
	switch {
	case strings.HasPrefix(p.Field, "--"):
		return p
	case strings.HasPrefix(p.Field, "spec."):
		return in.vipDocs.locate(p)
	}
	return layer(in.Install.Doc).locate(p)
}

// dependsOn lists the fields that a problem of meaning depends on: it may be a consequence of
// an error there.
var dependsOn = map[problem.Code][]string{
	problem.NoVIPs:             {"platform", "spec.apiVIPs", "spec.ingressVIPs"},
	problem.FamilyOrder:        {"platform", "networking", "spec.apiVIPs", "spec.ingressVIPs"},
	problem.VIPOutsideNetwork:  {"networking"},
	problem.NetworksOverlap:    {"networking.networkType"},
	problem.Topology:           {"controlPlane", "compute", "arbiter", "fencing"},
	problem.RendezvousVIP:      {"platform", "controlPlane", "spec.loadBalancer"},
	problem.RouterIDTaken:      {"metadata.name"},
	problem.ConflictingFields:  {"metadata", "baseDomain", "platform", "spec"},
	problem.NeedsVersion:       {"spec.openshiftVersion"},
	problem.UnsupportedVersion: {"spec.openshiftVersion"},
	problem.UnpinnedImage:      {"spec.images"},
	problem.OtherRelease:       {"spec.images", "spec.openshiftVersion"},
}

// isConsequence reports whether a problem may follow from errors found before.
func isConsequence(p problem.Problem, before problem.List) bool {
	if refused(before, p.Path()) {
		return true
	}
	return slices.ContainsFunc(dependsOn[p.Code], func(field string) bool { return refused(before, field) })
}
