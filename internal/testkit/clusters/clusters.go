// Package clusters loads the clusters of tests.
package clusters

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// Load returns the cluster of an install-config.yaml, and of a vipgen.yaml if it is not empty.
func Load(t testing.TB, install, vip string) *render.Cluster {
	t.Helper()
	s := render.Sources{InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(install)}}
	if vip != "" {
		s.VIPConfig = &render.File{Name: "vipgen.yaml", Data: []byte(vip)}
	}
	return loaded(t, s)
}

// Folder returns the cluster of the files in a folder.
func Folder(t testing.TB, dir string) *render.Cluster {
	t.Helper()
	read := func(name string) *render.File {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		testkit.Must(t, err)
		return &render.File{Name: name, Data: data}
	}
	return loaded(t, render.Sources{InstallConfig: *read("install-config.yaml"), VIPConfig: read("vipgen.yaml"), AgentConfig: read("agent-config.yaml")})
}

func loaded(t testing.TB, s render.Sources) *render.Cluster {
	t.Helper()
	c, _, err := render.Load(s, render.Options{})
	testkit.Must(t, err)
	return c
}
