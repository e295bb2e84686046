// Package previous is the version of vipgen that a cluster is upgraded from, and
// downgraded to, as tests know it: what it leaves on nodes, says to others and renders.
package previous

import (
	"embed"
	"io/fs"
	"testing"
)

// commit is that version. With another one, testdata has to be recorded anew: README.md
// there says how.
const commit = "e244bb35090e4be21af6439165a24884764061db"

//go:embed all:testdata
var recorded embed.FS

// File is what that version wrote, by its path in testdata.
func File(t testing.TB, path string) []byte {
	t.Helper()
	data, err := fs.ReadFile(recorded, "testdata/"+path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
