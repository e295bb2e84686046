package image

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ArchivePlatforms returns the platforms with archives in a release. Nodes run Linux: the
// others have vipgen and kubectl-vipgen alone.
func ArchivePlatforms() []v1.Platform {
	var out []v1.Platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			out = append(out, v1.Platform{OS: system, Architecture: arch})
		}
	}
	return out
}

// Release is the set of downloads.
type Release struct {
	Source
	// Archives and Image are the platforms of the archives and of the image.
	Archives, Image []v1.Platform
	// Name is the image's, with its tag.
	Name string
	// Extra are files of each archive, such as man pages, by their paths in it; those that are
	// not for Windows are left out there.
	Extra []File
	// Time is the time of all files.
	Time time.Time
	// Signer signs the checksums and the provenance; nil for a release without.
	Signer *Signer
}

// checksums is the file with the checksums of all others, as sha256sum writes them.
const checksums = "SHA256SUMS"

// releaseVersion matches versions of Go modules: semver.org with a v.
var releaseVersion = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)

// Write writes the release into an empty directory: archives with their bills of materials,
// krew's manifest, the image (see Image.Write), checksums, and with a Signer signature and
// provenance. It returns the image's name by digest.
func (r Release) Write(ctx context.Context, dir, work string) (pinned string, err error) {
	if !releaseVersion.MatchString(r.Version) {
		return "", fmt.Errorf("version %q: expected one such as v1.2.3 or v1.2.3-rc.1", r.Version)
	}
	var commit string
	if r.Signer != nil {
		if commit, err = r.commit(ctx); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if there, err := os.ReadDir(dir); err != nil {
		return "", err
	} else if len(there) > 0 {
		return "", fmt.Errorf("%s is not empty: a release goes into a directory of its own", dir)
	}
	for _, p := range r.Archives {
		if err := r.archive(ctx, p, dir, work); err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := r.krew(dir); err != nil {
		return "", err
	}
	i, err := Vipgen(ctx, r.Source, r.Name, r.Image, r.Time, work)
	if err != nil {
		return "", err
	}
	if pinned, err = i.Write(dir); err != nil {
		return "", err
	}
	if err := writeChecksums(dir); err != nil || r.Signer == nil {
		return pinned, err
	}
	return pinned, r.sign(ctx, dir, commit)
}

// archive writes the archive of one platform, and its bill of materials.
func (r Release) archive(ctx context.Context, p v1.Platform, dir, work string) error {
	name, ending := r.archiveName(p)
	top := "/" + name
	names := append(slices.Clone(programs), pluginProgram, labProgram)
	if p.OS != "linux" {
		names = []string{"vipgen", pluginProgram}
	}
	c, err := r.content(ctx, p, place{top, path.Join(top, "licenses"), path.Join(top, "sbom.spdx.json"), archive}, names, r.Time, work)
	if err != nil {
		return err
	}
	for _, f := range r.Extra {
		if p.OS == "windows" && strings.HasPrefix(f.Path, "/man/") {
			continue
		}
		f.Path = path.Join(top, f.Path)
		if err := c.Rootfs.Add(f); err != nil {
			return err
		}
	}
	write := c.Rootfs.tarGz
	if p.OS == "windows" {
		write = c.Rootfs.zip
	}
	out, err := os.Create(filepath.Join(dir, name+ending))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out, r.Time); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".spdx.json"), c.SBOM, 0o644); err != nil {
		return err
	}
	return out.Close()
}

// tarGz writes all entries into a compressed tar.
func (r *Rootfs) tarGz(w io.Writer, at time.Time) error {
	packed := gzip.NewWriter(w)
	return errors.Join(r.tar(packed, at), packed.Close())
}

// zipEpoch is the earliest time that a zip can hold.
var zipEpoch = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// zip writes all regular files into a zip.
func (r *Rootfs) zip(w io.Writer, at time.Time) error {
	if at = at.UTC(); at.Before(zipEpoch) {
		at = zipEpoch
	}
	z := zip.NewWriter(w)
	for _, f := range r.Files() {
		if !f.Mode.IsRegular() {
			continue
		}
		if err := f.zip(z, at); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return z.Close()
}

func (f File) zip(z *zip.Writer, at time.Time) error {
	h := &zip.FileHeader{Name: f.Path[1:], Method: zip.Deflate, Modified: at}
	h.SetMode(f.Mode)
	to, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	from, err := f.open()
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// writeChecksums writes the checksums of all files of a directory into one more.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		sum, err := sha256Of(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksums), []byte(lines.String()), 0o644)
}

// sha256Of returns the checksum of a file in hexadecimal digits.
func sha256Of(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
