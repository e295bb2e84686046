package image

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/pe"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// TestRelease builds a release for two systems and checks all files.
func TestRelease(t *testing.T) {
	linux, windows := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "windows", Architecture: "amd64"}
	dir := filepath.Join(t.TempDir(), "new", "release")
	r := Release{
		Source: Source{top, "v1.2.3-test"}, Archives: []v1.Platform{linux, windows}, Image: []v1.Platform{linux},
		Name: render.DefaultImages("").Agent, Time: epoch,
		Extra: []File{{Path: "/man/man1/vipgen.1", Mode: 0o644, Data: []byte("m")}, {Path: "/completions/vipgen.ps1", Mode: 0o644, Data: []byte("c")}},
	}
	pinned, err := r.Write(t.Context(), dir, scratch) // directory of the image's programs
	testkit.Must(t, err)
	testkit.Equal(t, pinned+"\n", string(testkit.ReadFile(t, filepath.Join(dir, "vipgen-agent.digest"))))
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", checksums)
	check.Dir = dir
	testkit.Run(t, check)
	if sums, files := strings.Count(string(testkit.ReadFile(t, filepath.Join(dir, checksums))), "\n"), len(sumsOf(t, dir)); sums != 8 || files != 9 {
		t.Errorf("%d checksums of %d files", sums, files)
	}

	const base = "vipgen-v1.2.3-test-linux-amd64"
	names := unpackTarGz(t, filepath.Join(dir, base+".tar.gz"), filepath.Join(dir, "unpacked"))
	for _, name := range []string{"/", "/vipgen", "/vipgen-agent", "/vipgen-lab", "/kubectl-vipgen", "/sbom.spdx.json", "/licenses/github.com/vipgen/vipgen/LICENSE", "/man/man1/vipgen.1", "/completions/vipgen.ps1"} {
		if !slices.Contains(names, base+name) {
			t.Errorf("no %s in %s", name, base)
		}
	}
	for _, name := range append(slices.Clone(programs), pluginProgram, labProgram) {
		out, err := exec.Command(filepath.Join(dir, "unpacked", base, name), "version").Output()
		if err != nil || !strings.HasPrefix(string(out), shownName(name)+" v1.2.3-test ") {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}

	const exe = "vipgen-v1.2.3-test-windows-amd64"
	z, err := zip.OpenReader(filepath.Join(dir, exe+".zip"))
	testkit.Must(t, err)
	defer z.Close()
	zipped := map[string]*zip.File{}
	for _, f := range z.File {
		zipped[f.Name] = f
		if !f.Modified.Equal(zipEpoch) {
			t.Errorf("%s: %v", f.Name, f.Modified)
		}
	}
	if zipped[exe+"/man/man1/vipgen.1"] != nil || zipped[exe+"/vipgen-agent.exe"] != nil || zipped[exe+"/completions/vipgen.ps1"] == nil || zipped[exe+"/licenses/stdlib/LICENSE"] == nil {
		t.Errorf("%v", zipped)
	}
	from, err := zipped[exe+"/vipgen.exe"].Open()
	testkit.Must(t, err)
	program, err := io.ReadAll(from)
	testkit.Must(t, err)
	if p, err := pe.NewFile(bytes.NewReader(program)); err != nil || p.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Errorf("%v, %v", p, err)
	}
	doc := readBill(t, archive, testkit.ReadFile(t, filepath.Join(dir, exe+".spdx.json")))
	if len(doc.Files) != 2 || doc.Files[0].FileName != "./"+exe+"/kubectl-vipgen.exe" || doc.Files[1].FileName != "./"+exe+"/vipgen.exe" {
		t.Errorf("%v", doc.Files)
	}
	checkKrew(t, dir, func(archive, file string) bool {
		return zipped[file] != nil && archive == exe+".zip" || slices.Contains(names, file) && archive == base+".tar.gz"
	})

	_, err = r.Write(t.Context(), dir, scratch)
	testkit.Fails(t, err, "is not empty")
}

// checkKrew compares krew's manifest with the archives: checksums, and contained files by
// holds.
func checkKrew(t *testing.T, dir string, holds func(archive, file string) bool) {
	t.Helper()
	var p struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	testkit.Must(t, yaml.UnmarshalStrict(testkit.ReadFile(t, filepath.Join(dir, krewManifest)), &p))
	if p.Metadata.Name != "vipgen" || p.Spec.Version != "v1.2.3-test" || len(p.Spec.Platforms) != 2 || len(p.Spec.ShortDescription) > 50 {
		t.Errorf("%+v", p)
	}
	for _, k := range p.Spec.Platforms {
		archive := path.Base(k.URI)
		if sum := fmt.Sprintf("%x", sha256.Sum256(testkit.ReadFile(t, filepath.Join(dir, archive)))); k.SHA256 != sum || k.URI != downloads+"v1.2.3-test/"+archive {
			t.Errorf("%+v: checksum %s", k, sum)
		}
		if len(k.Files) != 2 || path.Base(k.Files[0].From) != k.Bin || k.Bin != inSystem(v1.Platform{OS: k.Selector.MatchLabels["os"]}, "kubectl-vipgen") {
			t.Errorf("%+v", k)
		}
		for _, f := range k.Files {
			if !holds(archive, f.From) || f.To != "." {
				t.Errorf("%s has no %s", archive, f.From)
			}
		}
	}
}

// unpackTarGz unpacks an archive, checks each entry, and returns their names.
func unpackTarGz(t *testing.T, file, to string) (names []string) {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(testkit.ReadFile(t, file)))
	testkit.Must(t, err)
	plain := filepath.Join(t.TempDir(), "plain.tar")
	data, err := io.ReadAll(packed)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(plain, data, 0o644))
	for from := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(epoch) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		names = append(names, h.Name)
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	testkit.Must(t, os.MkdirAll(to, 0o755))
	testkit.Run(t, exec.Command("tar", "-xf", plain, "-C", to))
	return names
}

func TestReleaseVersion(t *testing.T) {
	for _, v := range []string{"", "1.2.3", "v1.2", "v1.2.3 -X y", "v01.2.3", "v1.2.3/..", "devel"} {
		dir := filepath.Join(t.TempDir(), "r")
		_, err := Release{Source: Source{top, v}}.Write(t.Context(), dir, t.TempDir())
		testkit.Fails(testkit.In(t, v), err, "such as v1.2.3")
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("version %q: wrote %s", v, dir)
		}
	}
}

// TestReproducible makes a release from two copies of the source in different places, like
// `make release`: the second one with another user's settings and an empty build cache, since
// Go would otherwise compare its cache with itself. Every file is the same.
func TestReproducible(t *testing.T) {
	testkit.Only(t, "release-check")
	dir := t.TempDir()
	outputs := map[string]map[string]string{}
	for _, c := range []struct{ place, prepare string }{
		{"one", ""},
		{"two/deeper", "umask 077; export LC_ALL=C TZ=Pacific/Auckland GOAMD64=v2 GOFLAGS=-p=2 GOCACHE=" + filepath.Join(dir, "cache")},
	} {
		source := filepath.Join(dir, c.place)
		copySource(t, source)
		tool := filepath.Join(dir, "tool")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", tool, "./cmd/image")
		build.Dir = filepath.Join(source, "internal/image")
		testkit.Run(t, build)
		make := exec.Command("/bin/sh", "-c", c.prepare+"\nexec "+tool+" release --source . --version v1.2.3 --output out")
		make.Dir = source
		make.Stderr = os.Stderr
		if _, err := make.Output(); err != nil {
			t.Fatal(err)
		}
		outputs[c.place] = sumsOf(t, filepath.Join(source, "out"))
	}
	one, two := outputs["one"], outputs["two/deeper"]
	for name := range two {
		if one[name] == "" {
			t.Errorf("only the second one made %s", name)
		}
	}
	testkit.Equal(t, 4+len(Platforms())+2*len(ArchivePlatforms()), len(one))
	for name, sum := range one {
		testkit.Equal(testkit.In(t, name), sum, two[name])
	}
}

func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		out[e.Name()] = fileSum(t, filepath.Join(dir, e.Name()))
	}
	return out
}

// copySource copies the checkout except for the files in .containerignore.
func copySource(t *testing.T, to string) {
	t.Helper()
	ignored := strings.Fields(string(testkit.ReadFile(t, filepath.Join(top, ".containerignore"))))
	for _, name := range ignored {
		if strings.ContainsAny(name, "*!/") {
			t.Fatalf(".containerignore: %s: this test takes names only", name)
		}
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		for _, i := range ignored {
			if name == i && d.IsDir() {
				return filepath.SkipDir
			}
			if name == i {
				return nil
			}
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is neither file nor directory", name)
			return nil
		}
		return os.WriteFile(filepath.Join(to, name), testkit.ReadFile(t, path), 0o644)
	})
	testkit.Must(t, err)
}
