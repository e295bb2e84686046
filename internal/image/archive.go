package image

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Content is an image's content for one platform.
type Content struct {
	Platform v1.Platform
	Rootfs   Rootfs
	// SBOM is the bill of materials, which is in the root file system as well.
	SBOM []byte
}

// Image is an image for one or more platforms.
type Image struct {
	// Name is the reference with its tag, as in pod manifests.
	Name string
	// Config has user, entry point, environment and labels, the same on all platforms.
	Config v1.Config
	// Contents are in the order of the index.
	Contents []Content
	// Time is the modification time of all files, and the image's creation time.
	Time time.Time
}

// The annotations that name an image in an archive: containerd and podman take the whole name
// from the first, skopeo the tag from the second (OCI image specification, annotations.md).
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// WriteArchive writes the image into an OCI archive, a tar of an image layout, and returns the
// digest of its index. The file is written atomically.
func (i *Image) WriteArchive(file string) (v1.Hash, error) {
	name, err := reference.ParseNamed(i.Name)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("image %q: %w; give a whole name such as registry.example.com/name:tag", i.Name, err)
	}
	tagged, ok := name.(reference.Tagged)
	if !ok {
		return v1.Hash{}, fmt.Errorf("image %q has no tag; give a name such as registry.example.com/name:tag", i.Name)
	}
	work, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(work)
	index, err := i.index(work)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	dir := filepath.Join(work, "layout")
	to, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationName: i.Name, annotationTag: tagged.Tag()}))
	}
	if err != nil {
		return v1.Hash{}, err
	}
	packed := filepath.Join(work, "archive")
	if err := pack(dir, packed, i.Time); err != nil {
		return v1.Hash{}, err
	}
	return digest, os.Rename(packed, file)
}

// Write writes into a directory, under the last part of the image's name: the archive, the bill
// of materials of each platform, and a file with the name pinned by digest, which it returns.
func (i *Image) Write(dir string) (pinned string, err error) {
	name, err := reference.ParseNamed(i.Name)
	if err != nil {
		return "", fmt.Errorf("image %q: %w; give a whole name such as registry.example.com/name:tag", i.Name, err)
	}
	base := filepath.Join(dir, path.Base(reference.Path(name)))
	digest, err := i.WriteArchive(base + ".oci.tar")
	if err != nil {
		return "", err
	}
	for _, c := range i.Contents {
		file := fmt.Sprintf("%s.%s-%s.spdx.json", base, c.Platform.OS, c.Platform.Architecture)
		if err := os.WriteFile(file, c.SBOM, 0o644); err != nil {
			return "", err
		}
	}
	pinned = reference.TrimNamed(name).Name() + "@" + digest.String()
	return pinned, os.WriteFile(base+".digest", []byte(pinned+"\n"), 0o644)
}

// index returns the index of the platforms' images, whose layers are kept in dir.
func (i *Image) index(dir string) (v1.ImageIndex, error) {
	var adds []mutate.IndexAddendum
	for n, c := range i.Contents {
		layer, err := i.layer(&c.Rootfs, filepath.Join(dir, fmt.Sprint("layer", n)))
		if err != nil {
			return nil, err
		}
		image, err := i.image(c.Platform, layer)
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &c.Platform}})
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...)
	if len(i.Config.Labels) == 0 {
		return index, nil
	}
	return mutate.Annotations(index, maps.Clone(i.Config.Labels)).(v1.ImageIndex), nil
}

func (i *Image) image(p v1.Platform, l v1.Layer) (v1.Image, error) {
	at := v1.Time{Time: i.Time.UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, Created: at, Config: i.Config,
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: l, History: v1.History{Created: at, CreatedBy: "vipgen"}})
}

// layer returns a root file system as a compressed tar in a file.
func (i *Image) layer(r *Rootfs, file string) (v1.Layer, error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.tarGz(out, i.Time), out.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
}

// pack writes a directory into a tar, whose entries are sorted and belong to root.
func pack(dir, file string, at time.Time) error {
	var all Rootfs
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return all.Add(File{Path: "/" + filepath.ToSlash(name), Mode: 0o644, Source: path})
	})
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := all.tar(out, at); err != nil {
		return err
	}
	return out.Close()
}
