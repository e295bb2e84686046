package diff

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
)

// Cluster is one side's part of a cluster. Its zero value is ready to use.
type Cluster struct {
	// Release of OpenShift without a patch level, as "4.18"; "" if unknown. Add takes it from
	// MachineConfigs that the operator rendered.
	Release string

	decoder ignition.Decoder
	configs []ignition.Document // MachineConfigs
	hosts   []ignition.Document // Ignition configs
	objects []object
	texts   map[string]text
}

// object is any other object for the cluster's API.
type object struct {
	kind, namespace, name string
	raw                   json.RawMessage
}

func (o object) String() string {
	if o.namespace != "" {
		return o.kind + " " + o.namespace + "/" + o.name
	}
	return o.kind + " " + o.name
}

// isPolicy reports whether it may hold the cluster's node disruption policy.
func (o object) isPolicy() bool { return o.kind == "MachineConfiguration" && o.name == "cluster" }

// text is a file of a node or of a daemon.
type text struct {
	contents string
	pool     string
}

// folders lists the folders that vipgen writes, and that of an installer's assets.
var folders = []string{"machineconfigs", "ignition", "manifests", "butane", "files", "openshift"}

// Place splits the path of a file, relative to a side, into that of its cluster and the rest.
func Place(name string) (cluster, file string) {
	parts := strings.Split(name, "/")
	for i, p := range parts[:len(parts)-1] {
		if slices.Contains(folders, p) {
			return path.Clean("./" + path.Join(parts[:i]...)), path.Join(parts[i:]...)
		}
	}
	dir, base := path.Split(name)
	return path.Clean("./" + dir), base
}

// Relevant reports whether a file may hold anything to compare.
func Relevant(name string) bool {
	_, file := Place(name)
	if strings.HasPrefix(file, "butane/") {
		return false // Ignition configs have them, too
	}
	return strings.HasPrefix(file, "files/") || formOf(name) != formLines
}

// Add reads a file of the cluster, with its path from Place. A file with nothing to compare
// adds nothing. The error is for content that does not match the file's name.
func (c *Cluster) Add(name string, data []byte) error {
	if rest, ok := strings.CutPrefix(name, "files/"); ok {
		pool, node, _ := strings.Cut(rest, "/")
		c.addText("/"+node, pool, data)
		return nil
	}
	if form := formOf(name); form != formLines && form != formYAML {
		c.addText(name, "", data)
		return nil
	}
	objects, err := ignition.Objects(data)
	var docs []ignition.Document
	if err == nil {
		docs, err = c.decoder.DecodeObjects(path.Base(name), objects)
	}
	if err != nil && !errors.Is(err, ignition.ErrNoConfig) {
		if path.Ext(name) == ".ign" || strings.Contains(string(data), "kind: MachineConfig") {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	for _, d := range docs {
		switch {
		case !strings.HasPrefix(d.Source, "MachineConfig "):
			c.hosts = append(c.hosts, d)
		case strings.HasPrefix(d.Name, "rendered-"):
			c.observe(d) // rendered by the operator from the others
		default:
			c.configs = append(c.configs, d)
		}
	}
	c.addObjects(objects)
	return nil
}

func (c *Cluster) addText(name, pool string, data []byte) {
	if c.texts == nil {
		c.texts = map[string]text{}
	}
	c.texts[pool+" "+name] = text{string(data), pool}
}

func (c *Cluster) addObjects(raws []json.RawMessage) {
	for _, raw := range raws {
		var o struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		if json.Unmarshal(raw, &o) != nil || o.APIVersion == "" || o.Metadata.Name == "" {
			continue
		}
		switch o.Kind {
		case "", "MachineConfig", "VIPConfig", "AgentConfig":
			continue // no kind: an install-config
		}
		c.objects = append(c.objects, object{o.Kind, o.Metadata.Namespace, o.Metadata.Name, raw})
	}
}

// Objects returns the objects of these kinds that have a name, in the order of the files.
func (c *Cluster) Objects(kinds ...string) []json.RawMessage {
	found := lists.Filter(c.objects, func(o object) bool { return slices.Contains(kinds, o.kind) })
	return lists.Map(found, func(o object) json.RawMessage { return o.raw })
}

// Empty reports whether there is nothing to compare.
func (c *Cluster) Empty() bool {
	return len(c.configs)+len(c.hosts)+len(c.objects)+len(c.texts) == 0
}

// Name returns the cluster's name in vipgen's MachineConfigs, or "".
func (c *Cluster) Name() string {
	for _, d := range c.configs {
		if name := d.Annotations[clusterAnnotation]; name != "" {
			return name
		}
	}
	return ""
}

const (
	clusterAnnotation = "vipgen.io/cluster"
	// the annotation of MachineConfigs that the operator generates
	generatedBy = "machineconfiguration.openshift.io/generated-by-controller-version"
)

func owner(d ignition.Document) string {
	switch {
	case d.Annotations[clusterAnnotation] != "":
		return ownVipgen
	case d.Annotations[generatedBy] != "", strings.HasPrefix(d.Name, "00-"), strings.HasPrefix(d.Name, "01-"):
		return ownOperator
	}
	return Users
}

const (
	ownVipgen   = "vipgen"
	ownOperator = "the operator"
	// Users is the owner of MachineConfigs that are neither vipgen's nor the operator's.
	Users = "another owner"
)

func (c *Cluster) ownedBy(owners ...string) []ignition.Document {
	return slices.DeleteFunc(slices.Clone(c.configs), func(d ignition.Document) bool { return !slices.Contains(owners, owner(d)) })
}

// foreign returns the MachineConfigs that are not vipgen's.
func (c *Cluster) foreign() []ignition.Document { return c.ownedBy(ownOperator, Users) }

// policy returns the node disruption policy of the cluster, with the defaults of a release's
// operator.
func (c *Cluster) policy(release string) (p policy, given bool) {
	for _, o := range c.objects {
		if o.isPolicy() {
			return parsePolicy(o.raw, release), true
		}
	}
	return clusterDefaults(release), false
}
