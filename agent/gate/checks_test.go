package gate

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// testChecks returns checks whose track files and published states are below root. The
// caller stops them.
func testChecks(t *testing.T, root string) *Checks {
	t.Helper()
	dir, err := state.Open(filepath.Join(root, "run"))
	testkit.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	files, err := health.OpenTrackFiles(filepath.Join(root, "track"))
	testkit.Must(t, err)
	return New(files, dir, nil, slog.New(slog.DiscardHandler))
}

// While the track files of a change cannot be created, the previous checks keep theirs current.
func TestHardCase42ChecksContinue(t *testing.T) {
	root := t.TempDir()
	c := testChecks(t, root)
	spec := &v1alpha1.ClusterConfigSpec{Ports: v1alpha1.DefaultPorts, Groups: []v1alpha1.Group{{Name: "ingress", Role: v1alpha1.GroupIngress, Instance: "demo_INGRESS", VirtualRouterID: 79}}}
	testkit.Must(t, c.Follow(spec, v1alpha1.RoleWorker, nil))
	defer c.Stop()
	// A directory in the place of the new group's file.
	more := *spec
	more.Groups = slices.Clone(spec.Groups)
	extra := v1alpha1.Group{Name: "extra", Role: v1alpha1.GroupIngress, Instance: "demo_extra", VirtualRouterID: 98}
	more.Groups = append(more.Groups, extra)
	_, added := vrrp.PriorityTerms(&extra, v1alpha1.RoleWorker)
	_, old := vrrp.PriorityTerms(&spec.Groups[0], v1alpha1.RoleWorker)
	blocked := firstNew(added, old)
	testkit.Must(t, os.Mkdir(filepath.Join(root, "track", blocked), 0o755))
	if err := c.Follow(&more, v1alpha1.RoleWorker, nil); err == nil {
		t.Fatalf("%s is a directory, and its track file is made", blocked)
	}
	if c.cancel == nil {
		t.Error("the checks of before do not run any more")
	}
	testkit.Must(t, os.Remove(filepath.Join(root, "track", blocked)))
	testkit.Check(t, c.Follow(&more, v1alpha1.RoleWorker, nil))
}

// firstNew returns the name of a term that others lacks.
func firstNew(terms, others []vrrp.Term) string {
	for _, t := range terms {
		known := false
		for _, o := range others {
			known = known || o.Name == t.Name
		}
		if !known {
			return t.Name
		}
	}
	return ""
}
