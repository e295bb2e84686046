package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestRooms: the drawing in architecture.md has an arrow for each folder that imports another,
// and no other. Tests may import more.
func TestRooms(t *testing.T) {
	_, drawing, _ := strings.Cut(read(t, "architecture.md"), "```mermaid\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	drawn, rooms := map[string]bool{}, map[string]bool{"api": true}
	for _, arrow := range regexp.MustCompile(`(\S+) --> (.*)`).FindAllStringSubmatch(drawing, -1) {
		for to := range strings.SplitSeq(arrow[2], " & ") {
			drawn[arrow[1]+" "+to], rooms[arrow[1]], rooms[to] = true, true, true
		}
	}
	room := func(folder string) string {
		for ; folder != "."; folder = filepath.Dir(folder) {
			if rooms[folder] {
				return folder
			}
		}
		return ""
	}
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".cache" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		from := room(strings.TrimPrefix(filepath.Dir(path), "../"))
		if from == "" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if name, ours := strings.CutPrefix(name, "github.com/vipgen/vipgen/"); ours {
				if to := room(name); to != "" && to != from && to != "api" {
					there[from+" "+to] = true
				}
			}
		}
		return nil
	})
	testkit.Must(t, err)
	testkit.Equal(t, slices.Sorted(maps.Keys(drawn)), slices.Sorted(maps.Keys(there)))
}
