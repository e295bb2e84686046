package image

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/pe"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/render"
)

// TestRelease makes a release for two systems and looks into everything.
func TestRelease(t *testing.T) {
	linux, windows := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "windows", Architecture: "amd64"}
	dir := filepath.Join(t.TempDir(), "new", "release")
	r := Release{
		Source: Source{top, "v1.2.3-test"}, Archives: []v1.Platform{linux, windows}, Image: []v1.Platform{linux},
		Name: render.DefaultImages("").Agent, Time: epoch,
		Extra: []File{{Path: "/man/man1/vipgen.1", Mode: 0o644, Data: []byte("m")}, {Path: "/completions/vipgen.ps1", Mode: 0o644, Data: []byte("c")}},
	}
	pinned, err := r.Write(t.Context(), dir, scratch) // where the image's programs are
	if err != nil {
		t.Fatal(err)
	}
	if got := string(readFile(t, filepath.Join(dir, "vipgen-agent.digest"))); got != pinned+"\n" {
		t.Errorf("%q, want %q", got, pinned)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", checksums)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if sums, files := strings.Count(string(readFile(t, filepath.Join(dir, checksums))), "\n"), len(sumsOf(t, dir)); sums != 7 || files != 8 {
		t.Errorf("%d checksums of %d files", sums, files)
	}

	const base = "vipgen-v1.2.3-test-linux-amd64"
	names := unpackTarGz(t, filepath.Join(dir, base+".tar.gz"), filepath.Join(dir, "unpacked"))
	for _, name := range []string{"/", "/vipgen", "/vipgen-agent", "/vipgen-lab", "/sbom.spdx.json", "/licenses/github.com/vipgen/vipgen/LICENSE", "/man/man1/vipgen.1", "/completions/vipgen.ps1"} {
		if !slices.Contains(names, base+name) {
			t.Errorf("no %s in %s", name, base)
		}
	}
	for _, name := range append(slices.Clone(programs), labProgram) {
		out, err := exec.Command(filepath.Join(dir, "unpacked", base, name), "version").Output()
		if err != nil || !strings.HasPrefix(string(out), name+" v1.2.3-test ") {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}

	const exe = "vipgen-v1.2.3-test-windows-amd64"
	z, err := zip.OpenReader(filepath.Join(dir, exe+".zip"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := pe.NewFile(bytes.NewReader(program)); err != nil || p.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Errorf("%v, %v", p, err)
	}
	doc := readBill(t, archive, readFile(t, filepath.Join(dir, exe+".spdx.json")))
	if len(doc.Files) != 1 || doc.Files[0].FileName != "./"+exe+"/vipgen.exe" {
		t.Errorf("%v", doc.Files)
	}
	for _, p := range doc.Packages[1:] {
		for license := range strings.SplitSeq(p.PackageLicenseDeclared, " AND ") {
			if !slices.Contains(licensesSeen, license) {
				t.Errorf("%s: licence %s", p.PackageName, p.PackageLicenseDeclared)
			}
		}
	}

	if _, err := r.Write(t.Context(), dir, scratch); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a directory with a release: %v", err)
	}
}

// unpackTarGz unpacks an archive, looks at each entry, and returns their names.
func unpackTarGz(t *testing.T, file, to string) (names []string) {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(readFile(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain.tar")
	data, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for from := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		names = append(names, h.Name)
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", plain, "-C", to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return names
}

func TestReleaseVersion(t *testing.T) {
	for _, v := range []string{"", "1.2.3", "v1.2", "v1.2.3 -X y", "v01.2.3", "v1.2.3/..", "devel"} {
		dir := filepath.Join(t.TempDir(), "r")
		_, err := Release{Source: Source{top, v}}.Write(t.Context(), dir, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "such as v1.2.3") {
			t.Errorf("version %q: %v", v, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("version %q: wrote %s", v, dir)
		}
	}
}
