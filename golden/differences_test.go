package golden

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// base is the case with which the others are compared, except for those in whole.
const base = "baremetal-usermanaged"

// whole are the cases whose files are kept completely, so that a change of a template has a
// diff of a few files only.
var whole = []string{base, "baremetal-ipi", "custom-pools", "external-load-balancer", "ipv6", "openshift-4.12", "openshift-4.22", "without-vips"}

// differences lays a result out as its summary, its cluster.yaml, and its differences from the
// base case.
func differences(t testing.TB, r result) files {
	t.Helper()
	const cluster = "files/" + everyPool + v1alpha1.ClusterConfigPath
	all := expected(t, r, false)
	out := files{"summary.txt": all["summary.txt"], "cluster.yaml": all[cluster]}
	delete(all, "summary.txt")
	delete(all, cluster)
	basis := expected(t, clusterCase{base, filepath.Join("cases", base)}.result(t), false)
	var text bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(all)) {
		like := counterpart(p, basis)
		diff := lineDiff(t, string(basis[like]), string(all[p]))
		switch {
		case like == p && diff == "":
			fmt.Fprintf(&text, "%s\n", p)
		case like == "":
			fmt.Fprintf(&text, "%s: not in %s\n%s", p, base, diff)
		case like == p:
			fmt.Fprintf(&text, "%s: differs\n%s", p, diff)
		default:
			fmt.Fprintf(&text, "%s: beside %s\n%s", p, like, diff)
		}
	}
	out["differences.txt"] = text.Bytes()
	return out
}

// counterpart returns the file of the base case that a file is compared with: that of the
// same path, else the first one of another pool or node with the same place there, else "".
func counterpart(p string, basis files) string {
	if _, ok := basis[p]; ok {
		return p
	}
	place := func(p string) string {
		parts := strings.SplitN(p, "/", 3)
		if len(parts) < 3 {
			return p
		}
		return path.Join(parts[0], parts[2])
	}
	for _, other := range slices.Sorted(maps.Keys(basis)) {
		if place(other) == place(p) {
			return other
		}
	}
	return ""
}

// positions are the line numbers of a diff, which other changes of a file move.
var positions = regexp.MustCompile(`(?m)^@@ .* @@$`)

// lineDiff returns the differences of two texts, with the line before and after each change.
func lineDiff(t testing.TB, from, to string) string {
	t.Helper()
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(from), B: difflib.SplitLines(to), Context: 1})
	testkit.Must(t, err)
	var out strings.Builder
	for line := range strings.Lines(positions.ReplaceAllString(diff, "@@")) {
		out.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String()
}
