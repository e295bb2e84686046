package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// The remains of a killed run are removed by the next one; those of a run in progress stay.
func TestStagesOfOthers(t *testing.T) {
	dir := t.TempDir()
	left, used := filepath.Join(dir, stagePrefix+"1"), filepath.Join(dir, stagePrefix+"2")
	lay(t, dir, map[string]string{stagePrefix + "1/0.new": "x", stagePrefix + "2/0.new": "y"})
	inUse, err := lock(used)
	testkit.Must(t, err)
	write := func() {
		t.Helper()
		os.Remove(filepath.Join(dir, "a"))
		if _, err := (Dir{Path: dir}).Write([]render.OutputFile{{Path: "a", Data: []byte("a\n")}}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it stays: %v", err)
	}
	if _, err := os.Stat(filepath.Join(used, "0.new")); err != nil {
		t.Error(err)
	}
	inUse.Close()
	write()
	if _, err := os.Stat(used); !os.IsNotExist(err) {
		t.Errorf("it stays: %v", err)
	}
}
