package golden

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
)

// everyPool is the folder of files that all pools have.
const everyPool = "every-pool"

// expected lays a result out for readers; see the package comment.
func expected(t testing.TB, r result, encoded bool) files {
	t.Helper()
	out := files{"summary.txt": r.validate, "pools.txt": listPools(t, r)}
	pools := r.pools()
	for _, pool := range pools {
		for p, data := range r.rendered.below("files/" + pool) {
			if verbatim[p] != "" {
				continue
			}
			folder := pool
			if r.shared(p, data) {
				folder = everyPool
			}
			out[path.Join("files", folder, p)] = data
		}
	}
	for p, data := range r.rendered {
		form, _, _ := strings.Cut(p, "/")
		if form == "manifests" || encoded && form != "files" {
			out[p] = data
		}
	}
	for node, all := range r.previews {
		for p, data := range all {
			out[path.Join("preview", node, path.Base(p))] = data
		}
	}
	return out
}

// pools returns the pools of the result, sorted.
func (r result) pools() []string {
	var pools []string
	for p := range r.rendered.below("files") {
		pool, _, _ := strings.Cut(p, "/")
		pools = append(pools, pool)
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

// shared reports whether all pools have the same file; the bootstrap host is not a pool, and
// has the same file unless it has its own.
func (r result) shared(p string, data []byte) bool {
	for _, pool := range r.pools() {
		if pool == v1alpha1.RoleBootstrap {
			continue
		}
		if other, ok := r.rendered[path.Join("files", pool, p)]; !ok || !bytes.Equal(other, data) {
			return false
		}
	}
	return true
}

// listPools lists the files of each pool with modes, and which units are enabled, from the
// Ignition configs.
func listPools(t testing.TB, r result) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, pool := range r.pools() {
		b := decode(t, r, "ignition/"+pool+".ign")
		fmt.Fprintf(&out, "%s\n", pool)
		for _, f := range b.Files {
			fmt.Fprintf(&out, "  %04o %s", f.Mode, f.Path)
			if verbatim[f.Path[1:]] != "" {
				out.WriteString(" (verbatim)")
			}
			out.WriteByte('\n')
		}
		for _, u := range b.Units {
			state := "as its preset says"
			if u.Enabled != nil {
				state = map[bool]string{true: "enabled", false: "disabled"}[*u.Enabled]
			}
			fmt.Fprintf(&out, "  unit %s %s\n", u.Name, state)
		}
	}
	return out.Bytes()
}

// decode reads one of the encoded forms.
func decode(t testing.TB, r result, path string) ignition.Bundle {
	t.Helper()
	data, ok := r.rendered[path]
	if !ok {
		t.Fatalf("there is no %s, only %q", path, slices.Sorted(maps.Keys(r.rendered)))
	}
	return decodeData(t, path, data)
}

// encodedFile identifies a file of a result.
type encodedFile struct {
	path string
	data *byte
}

// bundles has the ignition.Bundle of each encodedFile, which several checks of a case read.
var bundles sync.Map

// decodeData decodes a file. Tests share the result and must not modify it.
func decodeData(t testing.TB, path string, data []byte) ignition.Bundle {
	t.Helper()
	key := encodedFile{path, unsafe.SliceData(data)}
	if b, ok := bundles.Load(key); ok {
		return b.(ignition.Bundle)
	}
	documents, err := ignition.Decode(path, data)
	testkit.Must(testkit.In(t, path), err)
	if len(documents) != 1 {
		t.Fatalf("%s holds %d documents, want 1", path, len(documents))
	}
	d := documents[0]
	for _, f := range d.Files {
		if f.Problem != "" || f.Remote != "" || f.Append {
			t.Errorf("%s: %s is not a plain file: %q %q %v", path, f.Path, f.Problem, f.Remote, f.Append)
		}
	}
	testkit.Empty(testkit.In(t, path), d.Notes)
	bundles.Store(key, d.Bundle())
	return d.Bundle()
}
