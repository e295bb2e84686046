// Package render turns an install-config, with what goes beside it, into the
// ClusterConfig that nodes read and the files that every pool gets. It touches
// no disk, network or clock.
package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// File is an input with the name that reports call it by.
type File = source.File

// Sources are the files that describe one cluster.
type Sources struct {
	// InstallConfig is an install-config, or a file with objects that describe
	// clusters as package gitops reads them.
	InstallConfig File
	// Object names the cluster of several such objects; Companions are files that
	// may hold more objects of an AgentClusterInstall.
	Object     string
	Companions []File
	// AgentConfig and VIPConfig are optional.
	AgentConfig *File
	VIPConfig   *File
	// ClusterIngress is the cluster's Ingress object, where it says more than the
	// installer's default; nil else.
	ClusterIngress *File
	// Defaults are those of the fleet that the cluster belongs to, or nil.
	Defaults *Defaults
}

// Names are those of the files, the install-config first.
func (s Sources) Names() []string {
	names := []string{s.InstallConfig.Name}
	for _, f := range []*File{s.VIPConfig, s.AgentConfig, s.ClusterIngress} {
		if f != nil {
			names = append(names, f.Name)
		}
	}
	for _, f := range s.Companions {
		names = append(names, f.Name)
	}
	if s.Defaults != nil && s.Defaults.doc != nil {
		names = append(names, s.Defaults.doc.File)
	}
	return names
}

// Options are what a command line says about a cluster besides its files.
type Options struct {
	// OpenShiftVersion wins over the VIPConfig's.
	OpenShiftVersion string
	// OS is the operating system of the nodes, as ignition.ParseTarget knows it;
	// empty means OpenShift's.
	OS string
	// Release gives version and images where nothing else does.
	Release *Release
}

// Input is what Sources hold, each valid by itself.
type Input struct {
	Install *installconfig.InstallConfig
	Agent   *installconfig.AgentConfig
	VIP     *v1alpha1.VIPConfig
	// Ingress is the cluster's Ingress object, or nil.
	Ingress *installconfig.ClusterIngress
	// Manifests are the ConfigMaps that the cluster's object names; nil for an
	// install-config.
	Manifests *gitops.ManifestRefs
	// vipDocs are where the fields of VIP stand.
	vipDocs layers
	// givenProfile says that the profile of VIP is the user's choice.
	givenProfile bool
	// assumedNone is set where nothing gives the cluster VIPs, or type None.
	assumedNone bool
}

// Read reads all files of a cluster and finds the problems of all of them, which
// Report, or Load, makes a report of. What had a problem is missing from the input,
// which is nil where nothing can be made of a file at all: the list is a report then.
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

// readCluster reads the install-config, or the objects that stand for one.
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

// readVIPConfig reads a cluster's VIPConfig over the defaults of its fleet. ok is
// false where nothing can be made of the file at all.
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

// refused reports whether a field, or what it is part of or made of, has an error
// already: what it would hold is not known.
func refused(list problem.List, field string) bool {
	within := func(a, b string) bool {
		rest, ok := strings.CutPrefix(a, b)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return slices.ContainsFunc(list.Errors(), func(p problem.Problem) bool {
		return p.Path() == "" || within(field, p.Path()) || within(p.Path(), field)
	})
}

// version is the OpenShift version to write for; empty means any.
func (in *Input) version(o Options) string {
	release := ""
	if o.Release != nil {
		release = minor(o.Release.Version)
	}
	return cmp.Or(o.OpenShiftVersion, in.VIP.Spec.OpenShiftVersion, release)
}

// Load reads and resolves the files of one cluster. The list has every problem
// and warning; it is also the error when the cluster cannot be rendered.
func Load(s Sources, o Options) (*Cluster, problem.List, error) {
	in, list := Read(s)
	if in == nil {
		return nil, list, list.Err()
	}
	return in.Load(list, o)
}

// Load resolves an input that was read with the given problems. Those that follow
// from them are not reported.
func (in *Input) Load(list problem.List, o Options) (*Cluster, problem.List, error) {
	c, more := resolve(in, o)
	if broken := list.Errors(); len(broken) > 0 {
		c = nil
		more = slices.DeleteFunc(more, func(p problem.Problem) bool { return follows(p, broken) })
	}
	list = in.Report(append(list, more...))
	return c, list, list.Err()
}

// Locate fills in where the field of a problem stands: one that begins with
// "spec." in the VIPConfig, others in the install-config. Flags stand nowhere.
func (in *Input) Locate(p problem.Problem) problem.Problem {
	switch {
	case strings.HasPrefix(p.Field, "--"):
		return p
	case strings.HasPrefix(p.Field, "spec."):
		return in.vipDocs.locate(p)
	}
	return layer(in.Install.Doc).locate(p)
}

// rests says what a problem of meaning rests on: where an error is there, it may
// be nothing but a consequence.
var rests = map[problem.Code][]string{
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

// follows reports whether a problem may follow from errors found before.
func follows(p problem.Problem, before problem.List) bool {
	if refused(before, p.Path()) {
		return true
	}
	return slices.ContainsFunc(rests[p.Code], func(field string) bool { return refused(before, field) })
}
