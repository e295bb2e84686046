package testkit

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// Addrs are addresses, from text that a test has written well.
func Addrs(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// ReadFile returns what is in a file that has to be there.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	Must(t, err)
	return data
}

// WriteFile writes a file that all may read, and makes the folders that it is in.
func WriteFile(t testing.TB, path string, data []byte) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(t, os.WriteFile(path, data, 0o644))
}
