// Package previous is the version of vipgen that a cluster is upgraded from, and downgraded to,
// in tests: the files that it leaves on nodes, its messages to others and its output.
package previous

import (
	"embed"
	"io/fs"
	"testing"
)

// Commit is that version. With another one, testdata has to be recorded again: see
// README.md.
const Commit = "e244bb35090e4be21af6439165a24884764061db"

//go:embed all:testdata
var recorded embed.FS

// File returns a file of that version, by its path in testdata.
func File(t testing.TB, path string) []byte {
	t.Helper()
	data, err := fs.ReadFile(recorded, "testdata/"+path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
