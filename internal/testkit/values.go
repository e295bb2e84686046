package testkit

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Addrs parses addresses, and panics on an invalid one.
func Addrs(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// ReadFile returns the content of a file, which must exist.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	Must(t, err)
	return data
}

// WriteFile writes a file that all may read, and creates its folders.
func WriteFile(t testing.TB, path string, data []byte) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(t, os.WriteFile(path, data, 0o644))
}

// Kept compares an output with the file that keeps it, and writes the file before if update is
// set.
func Kept(t testing.TB, file string, got []byte, update bool) {
	t.Helper()
	if update {
		WriteFile(t, file, got)
	}
	if diff := cmp.Diff(string(ReadFile(t, file)), string(got)); diff != "" {
		t.Errorf("%s differs (-file +got):\n%s\nif that is right, run the test with -update, and read the diff", file, diff)
	}
}
