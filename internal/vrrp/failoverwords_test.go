package vrrp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// The terms for the phases of a failover are defined in one place: no other output has times
// with these terms, or other terms for the same, and the glossary defines them.
func TestFailoverTerms(t *testing.T) {
	another := regexp.MustCompile(`"[^"\n]*(%[sv] (` + vrrp.WithoutHolder + `|` + vrrp.WithoutAnswer + `)|(no node|nobody) (held|had) (it|the VIP) for)`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && strings.Trim(d.Name(), ".") != "":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		for _, found := range another.FindAllString(string(data), -1) {
			t.Errorf("%s: %s: use vrrp.WithoutHolder or vrrp.WithoutAnswer", path, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files: %v", files, err)
	}
	page := string(testkit.ReadFile(t, "../../docs/architecture.md"))
	for _, words := range []string{vrrp.WithoutHolder, vrrp.WithoutAnswer} {
		testkit.Contains(testkit.In(t, words), page, "\n| "+words+" | ")
	}
}
