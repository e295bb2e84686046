package nodeip

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Forward enables forwarding, for both families, on the interfaces with the chosen
// addresses (hard case 34): since OpenShift 4.14, OVN-Kubernetes enables it only on its
// own bridge, and VIPs could not be reached through another interface. root contains the
// host's /proc/sys/net. Forward returns the changed settings, and skips families that the
// kernel lacks.
func Forward(root string, c Choice) (changed []string, err error) {
	var interfaces []string
	for _, a := range c.Addresses {
		if a.Found() && !slices.Contains(interfaces, a.Interface) {
			interfaces = append(interfaces, a.Interface)
		}
	}
	for _, name := range interfaces {
		for _, family := range []string{"ipv4", "ipv6"} {
			dir := filepath.Join(root, "/proc/sys/net", family, "conf", name)
			did, e := forward(dir)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("switching on forwarding of %s on %s: %w", family, name, e))
			}
			if did {
				changed = append(changed, family+" on "+name)
			}
		}
	}
	return changed, err
}

// forward enables forwarding for one interface and family.
func forward(dir string) (changed bool, err error) {
	// Where the kernel takes routes from router advertisements, forwarding would end
	// that, except with 2 (ip-sysctl.rst, accept_ra).
	if _, err := change(filepath.Join(dir, "accept_ra"), "1", "2"); err != nil {
		return false, err
	}
	return change(filepath.Join(dir, "forwarding"), "0", "1")
}

// change sets a setting with value from; one that the kernel lacks is skipped.
func change(path, from, to string) (changed bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || strings.TrimSpace(string(data)) != from {
		return false, err
	}
	err = os.WriteFile(path, []byte(to), 0)
	return err == nil, err
}
