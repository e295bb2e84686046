package nodes

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// The package has its own types for API objects, with only the fields that it needs.
// Other fields are never in memory, which counts with 2,000 nodes that each list their
// images, and the binary does without the types of the whole API.

// coreV1 is the group and version of all objects read.
var coreV1 = schema.GroupVersion{Version: "v1"}

// codecs decodes the events of watches.
var codecs = newCodecs()

func newCodecs() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(coreV1.WithKind("Node"), &nodeObject{})
	s.AddKnownTypeWithName(coreV1.WithKind("Pod"), &podObject{})
	s.AddKnownTypeWithName(coreV1.WithKind("ConfigMap"), &configMapObject{})
	metav1.AddToGroupVersion(s, coreV1)
	return serializer.NewCodecFactory(s).WithoutConversion()
}

// meta holds the needed metadata of an object.
type meta struct {
	Name            string       `json:"name"`
	Namespace       string       `json:"namespace"`
	ResourceVersion string       `json:"resourceVersion"`
	Deleted         *metav1.Time `json:"deletionTimestamp"`
	Labels          labels       `json:"labels"`
	Annotations     annotations  `json:"annotations"`
}

// annotations holds the needed annotations.
type annotations struct {
	// Of OVN-Kubernetes, each a JSON list of strings: all addresses of the host, with and
	// without prefix length (hard case 12), and those held only for pods (hard case 10).
	HostCIDRs          string `json:"k8s.ovn.org/host-cidrs"`
	HostAddresses      string `json:"k8s.ovn.org/host-addresses"`
	SecondaryEgressIPs string `json:"k8s.ovn.org/secondary-host-egress-ips"`
	BridgeEgressIPs    string `json:"k8s.ovn.org/bridge-egress-ips"`
	// Of the machine config operator.
	CurrentConfig string `json:"machineconfiguration.openshift.io/currentConfig"`
	DesiredConfig string `json:"machineconfiguration.openshift.io/desiredConfig"`
	State         string `json:"machineconfiguration.openshift.io/state"`
	// Of the agent on the node.
	VRRP string `json:"vipgen.io/vrrp"`
	// Of the installer, on the ConfigMap etcd-endpoints.
	EtcdBootstrap string `json:"alpha.installer.openshift.io/etcd-bootstrap"`
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *meta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, ResourceVersion: m.ResourceVersion}
}

type nodeObject struct {
	metav1.TypeMeta `json:",inline"`
	meta            `json:"metadata"`
	Status          struct {
		Addresses []nodeAddress `json:"addresses"`
		NodeInfo  struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

type nodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// DeepCopyObject implements runtime.Object. Objects are never changed, so a shallow copy
// is enough.
func (n *nodeObject) DeepCopyObject() runtime.Object { c := *n; return &c }

type podObject struct {
	metav1.TypeMeta `json:",inline"`
	meta            `json:"metadata"`
	Status          struct {
		Phase      string         `json:"phase"`
		Conditions []podCondition `json:"conditions"`
	} `json:"status"`
}

type podCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// DeepCopyObject implements runtime.Object like nodeObject's.
func (p *podObject) DeepCopyObject() runtime.Object { c := *p; return &c }

type configMapObject struct {
	metav1.TypeMeta `json:",inline"`
	meta            `json:"metadata"`
}

// DeepCopyObject implements runtime.Object like nodeObject's.
func (c *configMapObject) DeepCopyObject() runtime.Object { o := *c; return &o }

type list[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []T
}

// DeepCopyObject implements runtime.Object like nodeObject's.
func (l *list[T]) DeepCopyObject() runtime.Object { c := *l; return &c }

// readList decodes a list from a stream, object by object: a list of 2,000 nodes is tens
// of megabytes, of which little is kept.
func readList[T any](r io.Reader) (runtime.Object, error) {
	l := new(list[T])
	d := json.NewDecoder(r)
	if err := expect(d, json.Delim('{')); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "metadata":
			err = d.Decode(&l.ListMeta)
		case "items":
			err = readItems(d, &l.Items)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", key, err)
		}
	}
	return l, expect(d, json.Delim('}'))
}

// readItems decodes an array, or null for an empty one.
func readItems[T any](d *json.Decoder, items *[]T) error {
	start, err := d.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('[') {
		return fmt.Errorf("%v where a list was expected", start)
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		*items = append(*items, item)
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where %v was expected", got, want)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
