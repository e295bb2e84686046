package nodeip

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
)

// Preference holds what decides on a node's address besides its networks.
type Preference struct {
	// Hints are addresses in further networks to choose from; the node need not have
	// them.
	Hints []netip.Addr
	// Kept are the addresses chosen before: they stay while the node has them.
	Kept []netip.Addr
	// Registered are the addresses of the Node object: without a Kept one of a family,
	// one of them stays.
	Registered []netip.Addr
}

// hintVariables are the variables of OpenShift's /etc/default/nodeip-configuration, the
// older name last; the first one set counts. The unit passes those that apply to the
// platform and release (hard case 47; templates/unit).
var hintVariables = []string{"NODEIP_HINT", "KUBELET_NODEIP_HINT"}

// ReadHints parses the space-separated addresses in hintVariables. The error quotes an
// invalid one.
func ReadHints(environment func(string) string) ([]netip.Addr, error) {
	for _, name := range hintVariables {
		words := strings.Fields(environment(name))
		if len(words) == 0 {
			continue
		}
		var out []netip.Addr
		for _, w := range words {
			a, err := netip.ParseAddr(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is not an address; it must be one in the network that the node's address is in", name, w)
			}
			out = append(out, a.Unmap())
		}
		return out, nil
	}
	return nil, nil
}

var keptAddresses = lazy.Regexp(`"KUBELET_NODE_IPS?=([^"]*)"`)

// ReadKept reads the addresses chosen before from kubelet's drop-in under root, written
// by Write or by OpenShift's own unit. A missing file, or one without addresses, is no
// error.
func ReadKept(root string) ([]netip.Addr, error) {
	data, err := os.ReadFile(filepath.Join(root, kubeletDropIn))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the address chosen before: %w", err)
	}
	var out []netip.Addr
	for _, m := range keptAddresses().FindAllSubmatch(data, -1) {
		for _, w := range strings.Split(string(m[1]), ",") {
			if a, err := netip.ParseAddr(w); err == nil && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// servingCertificate is kubelet's certificate without the key, copied by the node-ip
// unit. Kubelet requests it with the addresses in the Node's status, and again when they
// change (addressesToHostnamesAndIPs), so they are known without the API; on a first boot
// there is none.
const servingCertificate = v1alpha1.NodeIPDir + "/kubelet-server.crt"

// ReadRegistered reads the addresses of the Node from servingCertificate under root.
// Without the file, before kubelet's first run, there are none.
func ReadRegistered(root string) ([]netip.Addr, error) {
	data, err := os.ReadFile(filepath.Join(root, servingCertificate))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of the Node: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("reading the addresses of the Node: %s: no certificate", servingCertificate)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of the Node: %s: %w", servingCertificate, err)
	}
	return lists.Map(cert.IPAddresses, addr), nil
}

// registered returns a current address of the Node; of several, the preferred one.
func (s survey) registered(f Family, spec *v1alpha1.ClusterConfigSpec, p Preference) Chosen {
	all := s.interfaces
	s.interfaces = nil
	for _, i := range all {
		i.Addresses = slices.DeleteFunc(slices.Clone(i.Addresses), func(a netip.Prefix) bool { return !slices.Contains(p.Registered, a.Addr()) })
		s.interfaces = append(s.interfaces, i)
	}
	c := s.anew(f, spec, p.Hints)
	if !c.Found() {
		c = s.kept(f, p.Registered)
	}
	c.Why = "the Node has it, by kubelet's certificate"
	return c
}

// kept returns a previous address that the node still has.
func (s survey) kept(f Family, before []netip.Addr) Chosen {
	for _, want := range before {
		if c := s.first(f, "chosen before, and the node still has it", func(_ string, a netip.Addr) bool { return a == want }); c.Found() {
			return c
		}
	}
	return Chosen{}
}
