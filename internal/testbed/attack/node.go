package attack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Node holds the fields of its own Node that a kubelet may write, besides the name.
type Node struct {
	Labels, Annotations map[string]string
	Addresses           []Address
	KubeletVersion      string
	// NoRole is set if the labels of its role are missing, which no kubelet can cause.
	NoRole bool
}

// Address is an address in a Node's status.
type Address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Annotations that agents read.
var annotations = []string{
	"k8s.ovn.org/host-cidrs", "k8s.ovn.org/host-addresses", "k8s.ovn.org/secondary-host-egress-ips", "k8s.ovn.org/bridge-egress-ips",
	"machineconfiguration.openshift.io/currentConfig", "machineconfiguration.openshift.io/desiredConfig", "machineconfiguration.openshift.io/state",
	"vipgen.io/vrrp",
}

// addresses with a special meaning, or invalid ones.
var addresses = []string{
	"", "0.0.0.0", "127.0.0.1", "::", "::1", "224.0.0.18", "ff02::12", "255.255.255.255", "fe80::1%ens3", "fd69::2",
}

// NewNode returns a random Node. taken are addresses of others, which it may claim, and network
// has a verb for a number of up to three digits, as in 192.0.2.%d.
func NewNode(r *rand.Rand, network string, taken ...string) (n Node) {
	o := odd{r}
	of := append(append([]string{"::ffff:" + fmt.Sprintf(network, 11)}, addresses...), taken...)
	address := func() string {
		return o.one(o.text, o.word(of...), func() string { return fmt.Sprintf(network, 100+r.IntN(150)) })
	}
	list := func() string {
		var out []string
		for range r.IntN(1 << r.IntN(9)) {
			out = append(out, o.one(address, func() string { return address() + "/" + o.word("24", "64", "32", "x", "999")() }))
		}
		data, _ := json.Marshal(out)
		return string(data)
	}
	for range r.IntN(1 << r.IntN(10)) {
		n.Addresses = append(n.Addresses, Address{o.one(o.word("InternalIP", "InternalIP", "Hostname", "ExternalIP"), o.text), address()})
	}
	role := func(names ...string) func() string {
		return func() string { return v1alpha1.RoleLabel(o.word(names...)()) }
	}
	n.Labels = o.object(func() string { return o.one(o.text, role("worker", "Infra_GPU", "bootstrap", "", "a.b")) }, func() string { return o.one(o.text, o.word("")) })
	n.Annotations = o.object(o.word(annotations...), func() string { return o.one(o.text, list) })
	n.KubeletVersion = o.text()
	return n
}

// odd draws unexpected values.
type odd struct{ *rand.Rand }

var alphabet = []rune("abz09AZ-_./:+\n\r\t\x00 \"'\\{}[]#!$%*ü€😀")

// text returns any text, usually short.
func (o odd) text() string {
	var b strings.Builder
	for range o.IntN(1 << o.IntN(11)) {
		b.WriteRune(alphabet[o.IntN(len(alphabet))])
	}
	return b.String()
}

func (o odd) one(of ...func() string) string { return of[o.IntN(len(of))]() }

func (o odd) word(of ...string) func() string {
	return func() string { return of[o.IntN(len(of))] }
}

// object returns a map with up to 20 entries.
func (o odd) object(key, value func() string) map[string]string {
	m := map[string]string{}
	for range o.IntN(20) {
		m[key()] = value()
	}
	return m
}
