package importer

import (
	"encoding/json"
	"net/netip"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
)

// Names of the written files.
const (
	InstallConfigName = "install-config.yaml"
	VIPConfigName     = "vipgen.yaml"
)

// installFile is the written install-config: the fields that vipgen reads.
type installFile struct {
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	BaseDomain   string                  `json:"baseDomain"`
	Networking   networkFile             `json:"networking,omitzero"`
	ControlPlane controlPlaneFile        `json:"controlPlane"`
	Arbiter      *poolFile               `json:"arbiter,omitempty"`
	Compute      []poolFile              `json:"compute"`
	Platform     map[string]platformFile `json:"platform"`
	FeatureSet   string                  `json:"featureSet,omitempty"`
}

type networkFile struct {
	NetworkType string               `json:"networkType,omitempty"`
	Machine     []cidrFile           `json:"machineNetwork,omitempty"`
	Cluster     []clusterNetworkFile `json:"clusterNetwork,omitempty"`
	Service     []netip.Prefix       `json:"serviceNetwork,omitempty"`
}

type clusterNetworkFile struct {
	cidrFile
	HostPrefix int `json:"hostPrefix,omitempty"`
}

type cidrFile struct {
	CIDR netip.Prefix `json:"cidr"`
}

func cidrs(list []netip.Prefix) []cidrFile {
	return lists.Map(list, func(p netip.Prefix) cidrFile { return cidrFile{p.Masked()} })
}

type poolFile struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

type controlPlaneFile struct {
	poolFile
	// Fencing is set for two nodes with fencing.
	Fencing *fencingFile `json:"fencing,omitempty"`
}

// fencingFile has an empty entry for each node: the entries are credentials.
type fencingFile struct {
	Credentials []struct{} `json:"credentials"`
}

type loadBalancerFile struct {
	Type string `json:"type"`
}

type platformFile struct {
	APIVIPs      []netip.Addr      `json:"apiVIPs,omitempty"`
	IngressVIPs  []netip.Addr      `json:"ingressVIPs,omitempty"`
	DNSVIP       *netip.Addr       `json:"dnsVIP,omitempty"`
	LoadBalancer *loadBalancerFile `json:"loadBalancer,omitempty"`
	DNSRecords   string            `json:"dnsRecordsType,omitempty"`
}

// ovirtFile is platformFile in oVirt's spelling.
type ovirtFile struct {
	APIVIPs      []netip.Addr      `json:"api_vips,omitempty"`
	IngressVIPs  []netip.Addr      `json:"ingress_vips,omitempty"`
	DNSVIP       *netip.Addr       `json:"dns_vip,omitempty"`
	LoadBalancer *loadBalancerFile `json:"loadBalancer,omitempty"`
}

func (f *installFile) setPlatform(name string, p platformFile) {
	f.Platform = map[string]platformFile{name: p}
}

// setFeatureSet sets the featureSet of a cluster that uses previews.
func (f *installFile) setFeatureSet(version string) {
	fencing := f.ControlPlane.Fencing != nil && version != "" && !assets.AtLeast(version, "4.22")
	arbiter := f.Arbiter != nil && version != "" && !assets.AtLeast(version, "4.20")
	for _, p := range f.Platform {
		if fencing || arbiter || p.DNSRecords != "" {
			f.FeatureSet = "TechPreviewNoUpgrade"
		}
	}
}

const installHead = `# Made by 'vipgen import' of a running cluster: what vipgen reads of an
# install-config, and no more. pullSecret, sshKey and the credentials of the
# platform are left out on purpose: vipgen reads none of them. An installer wants
# them.
`

const fencingNote = `# The entries of controlPlane.fencing are empty on purpose: credentials belong there.
`

const vipHead = `# Made by 'vipgen import' of a running cluster, so that it goes on as it is.
# What is not here is as vipgen has it by default.
`

func (f *installFile) text() []byte {
	head := installHead
	if f.ControlPlane.Fencing != nil {
		head += fencingNote
	}
	var v any = f
	if p, ok := f.Platform["ovirt"]; ok {
		type plain installFile
		v = struct {
			plain
			Platform map[string]ovirtFile `json:"platform"`
		}{plain(*f), map[string]ovirtFile{"ovirt": {p.APIVIPs, p.IngressVIPs, p.DNSVIP, p.LoadBalancer}}}
	}
	return append([]byte(head), marshal(v)...)
}

func vipConfigText(c *v1alpha1.VIPConfig) []byte {
	head := vipHead
	if want := c.Spec.VRRP.Interoperable; want != nil && !*want {
		head += "# interoperable is false because the bootstrap host is gone: nodes need not start as it\n# does, and what no new cluster can have is a warning.\n"
	}
	data, err := json.Marshal(c)
	var v map[string]any
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		panic(err) // strings, numbers and addresses cannot fail
	}
	for n, g := range c.Spec.Ingress {
		if g.NodeSelector != nil && len(g.NodeSelector) == 0 {
			// An empty selector means every node; the type omits it.
			v["spec"].(map[string]any)["ingress"].([]any)[n].(map[string]any)["nodeSelector"] = map[string]any{}
		}
	}
	return append([]byte(head), marshal(v)...)
}

// marshal writes YAML with sorted keys.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		panic(err) // strings, numbers and addresses cannot fail
	}
	return data
}
