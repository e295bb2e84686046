package rig

import (
	"os"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program that the project builds at a pinned version.
func Tool(t testing.TB, name string) string {
	t.Helper()
	return made(t, "bin/"+name)
}

// made returns the path of a product of `make e2e-tools`.
func made(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../.cache", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not there: run `make e2e-tools` (%v)", name, err)
	}
	return path
}
