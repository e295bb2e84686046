package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
)

// releaseAnnotation is the annotation of rendered MachineConfigs with the operator's OpenShift
// release (ReleaseImageVersionAnnotationKey).
const releaseAnnotation = "machineconfiguration.openshift.io/release-image-version"

// observe takes the release from a rendered MachineConfig. Those of earlier releases stay in a
// cluster, so the latest counts.
func (c *Cluster) observe(d ignition.Document) {
	version := strings.SplitN(d.Annotations[releaseAnnotation], ".", 3)
	if len(version) < 2 {
		return
	}
	if r := version[0] + "." + version[1]; assets.AtLeast(r, cmp.Or(c.Release, assets.Releases[0].Version)) {
		c.Release = r
	}
}

// order compares two MachineConfigs of a pool by the operator's merge order.
type order func(a, b ignition.Document) int

// nameOrder is the order up to OpenShift 4.14 (MergeMachineConfigs).
func nameOrder(a, b ignition.Document) int { return strings.Compare(a.Name, b.Name) }

// workerFirst is the order from 4.15 on (MergeMachineConfigs, hard case 50): a pool's own
// MachineConfigs come after the worker's, whatever their names.
func workerFirst(a, b ignition.Document) int {
	own := func(d ignition.Document) int {
		if d.Role == v1alpha1.RoleWorker {
			return 0
		}
		return 1
	}
	return cmp.Or(own(a)-own(b), nameOrder(a, b))
}

// orders returns the merge orders that the operator of a release may use, the most likely
// first.
func orders(release string) []order {
	switch {
	case release == "":
		return []order{workerFirst, nameOrder}
	case assets.AtLeast(release, "4.15"):
		return []order{workerFirst}
	}
	return []order{nameOrder}
}

// inPool returns the MachineConfigs of a pool in merge order. Nodes of a custom pool get the
// worker's too.
func inPool(docs []ignition.Document, pool string, by order) []ignition.Document {
	out := lists.Filter(docs, func(d ignition.Document) bool {
		return d.Role == pool || d.Role == v1alpha1.RoleWorker && isCustomPool(pool)
	})
	slices.SortStableFunc(out, by)
	return out
}

func isCustomPool(pool string) bool {
	switch pool {
	case v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter, v1alpha1.RoleBootstrap:
		return false
	}
	return true
}
