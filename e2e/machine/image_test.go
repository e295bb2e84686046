package machine

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// makeImage makes an image of programs of this machine, by their paths in it, with
// the libraries that they need, and returns its archive in the form of docker save.
// It stands in for the images that are made of Debian's packages.
func makeImage(t *testing.T, name string, programs map[string]string) string {
	t.Helper()
	files := maps.Clone(programs)
	for _, program := range programs {
		out, _ := exec.Command("ldd", program).CombinedOutput() // fails for static ones
		for _, match := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllSubmatch(out, -1) {
			files[string(match[1])] = string(match[1])
		}
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range []string{"tmp", "etc", "run", "var"} {
		add(t, w, &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil)
	}
	add(t, w, &tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/:/bin/sh\n"))
	add(t, w, &tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\n"))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		data, err := os.ReadFile(files[path])
		if err != nil {
			t.Fatal(err)
		}
		add(t, w, &tar.Header{Name: path[1:], Mode: 0o755}, data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	config := marshal(t, map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, "Entrypoint": []string{"/bin/sleep", "infinity"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	var archive bytes.Buffer
	w = tar.NewWriter(&archive)
	add(t, w, &tar.Header{Name: "layer.tar", Mode: 0o644}, layer.Bytes())
	add(t, w, &tar.Header{Name: "config.json", Mode: 0o644}, config)
	add(t, w, &tar.Header{Name: "manifest.json", Mode: 0o644}, marshal(t, []any{map[string]any{
		"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func add(t *testing.T, w *tar.Writer, h *tar.Header, data []byte) {
	t.Helper()
	h.Size = int64(len(data))
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
