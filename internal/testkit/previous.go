package testkit

import (
	"embed"
	"io/fs"
	"testing"
)

// PreviousCommit is the version of vipgen that a cluster is upgraded from, and downgraded to, in
// tests. With another one, testdata has to be recorded again: see previous/README.md.
const PreviousCommit = "e244bb35090e4be21af6439165a24884764061db"

// recorded holds the files that it leaves on nodes, its messages to others and its output.
//
//go:embed all:previous/testdata
var recorded embed.FS

// Previous returns a file of that version, by its path in testdata.
func Previous(t testing.TB, path string) []byte {
	t.Helper()
	data, err := fs.ReadFile(recorded, "previous/testdata/"+path)
	Must(t, err)
	return data
}
