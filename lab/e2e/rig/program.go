package rig

import (
	"os"
	"path/filepath"
	"testing"
)

// Tool is the path of a program that the project builds at a pinned version.
func Tool(t testing.TB, name string) string {
	t.Helper()
	return program(t, "../../../.cache/bin/"+name, "make e2e-tools")
}

// Built is the path of a program of vipgen's own.
func Built(t testing.TB, name string) string {
	t.Helper()
	return program(t, "../../../bin/"+name, "make build")
}

// program is a file that a command makes.
func program(t testing.TB, file, command string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not built: run `%s` (%v)", filepath.Base(file), command, err)
	}
	return path
}
