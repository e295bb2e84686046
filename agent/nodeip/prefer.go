package nodeip

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Preference is what else than the network a node's address is chosen by.
type Preference struct {
	// Hints are addresses in further networks to choose from, whether the node has them or
	// not.
	Hints []netip.Addr
	// Kept are the addresses that the node has: they stay, as long as it has them.
	Kept []netip.Addr
}

// hintVariables are those of OpenShift's /etc/default/nodeip-configuration, the
// older name last; the first that is set counts. The unit passes those on that count on the
// cluster's platform and release (hard case 47; templates/unit).
var hintVariables = []string{"NODEIP_HINT", "KUBELET_NODEIP_HINT"}

// ReadHints reads hintVariables, which hold addresses with spaces between. The
// error names what is none.
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
				return nil, fmt.Errorf("%s: %q is no address; it has to be one in the network that the node's address is in", name, w)
			}
			out = append(out, a.Unmap())
		}
		return out, nil
	}
	return nil, nil
}

var keptAddresses = regexp.MustCompile(`"KUBELET_NODE_IPS?=([^"]*)"`)

// ReadKept reads which addresses were chosen before, from kubelet's drop-in under
// root, whether Write made it or OpenShift's own unit. Where there is none, or
// none that makes sense, none were.
func ReadKept(root string) ([]netip.Addr, error) {
	data, err := os.ReadFile(filepath.Join(root, kubeletDropIn))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the address chosen before: %w", err)
	}
	var out []netip.Addr
	for _, m := range keptAddresses.FindAllSubmatch(data, -1) {
		for _, w := range strings.Split(string(m[1]), ",") {
			if a, err := netip.ParseAddr(w); err == nil && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// kept is an address that was chosen before and is still the node's.
func (s survey) kept(f Family, before []netip.Addr) Chosen {
	for _, want := range before {
		for _, i := range s.interfaces {
			for _, a := range i.Addresses {
				if a.Addr() == want && familyOf(want) == f {
					return Chosen{Address: a, Interface: i.Name, Why: "chosen before, and the node still has it"}
				}
			}
		}
	}
	return Chosen{}
}
