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
	if got := string(testkit.ReadFile(t, filepath.Join(dir, "vipgen-agent.digest"))); got != pinned+"\n" {
		t.Errorf("%q, want %q", got, pinned)
	}
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

	if _, err := r.Write(t.Context(), dir, scratch); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a directory with a release: %v", err)
	}
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
