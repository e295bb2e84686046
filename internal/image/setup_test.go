package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

const top = "../.." // of the checkout

var epoch = time.Unix(0, 0)

// scratch exists until all tests have ended: images take their files from it.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "vipgen-image-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// platforms are this machine's and one with the other byte order; all for a release.
func platforms() []v1.Platform {
	if testkit.Asked("release-check") {
		return Platforms()
	}
	return []v1.Platform{Here(), {OS: "linux", Architecture: "s390x"}}
}

// built is vipgen's own image of this checkout, built once.
var built = sync.OnceValues(func() (*Image, error) {
	return Vipgen(context.Background(), Source{top, "v1.2.3-test"}, render.DefaultImages("").Agent, platforms(), epoch, scratch)
})

func vipgenImage(t *testing.T) *Image {
	t.Helper()
	i, err := built()
	testkit.Must(t, err)
	return i
}

// daemonImages are the images of keepalived, HAProxy and CoreDNS.
func daemonImages(t *testing.T) []*Image {
	t.Helper()
	list, err := Daemons(render.DefaultImages(""), filepath.Join(top, ".cache/bin/coredns"), epoch)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%v: run `make setup tools e2e-setup`", err)
	}
	testkit.Must(t, err)
	return list
}

// open writes an image's archive and reads its index back.
func open(t *testing.T, i *Image) (archive string, index v1.ImageIndex) {
	t.Helper()
	dir := t.TempDir()
	archive = filepath.Join(dir, "image.tar")
	digest, err := i.WriteArchive(archive)
	testkit.Must(t, err)
	to := filepath.Join(dir, "layout")
	testkit.Must(t, os.Mkdir(to, 0o755))
	testkit.Run(t, exec.Command("tar", "-xf", archive, "-C", to))
	all, err := layout.ImageIndexFromPath(to)
	testkit.Must(t, err)
	if index, err = all.ImageIndex(digest); err != nil {
		t.Fatal(err)
	}
	return archive, index
}

// entry is the compared part of a file in an image.
type entry struct {
	Type     byte
	Mode     int64
	UID, GID int
	Link     string
	Size     int64
	Sum      string
	At       time.Time
}

// entries returns the entries of an image's file system, of all layers, by path.
func entries(t *testing.T, i v1.Image) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	stream := mutate.Extract(i)
	defer stream.Close()
	for from := tar.NewReader(stream); ; {
		h, err := from.Next()
		if err == io.EOF {
			return out
		}
		testkit.Must(t, err)
		out["/"+strings.Trim(h.Name, "/")] = entry{h.Typeflag, h.Mode & 0o7777, h.Uid, h.Gid, h.Linkname, h.Size, sumOf(t, from), h.ModTime.UTC()}
	}
}

func sumOf(t *testing.T, from io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, from); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
