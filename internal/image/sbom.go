package image

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Component is a part of an image: a Go module, or a package of the distribution.
type Component struct {
	// PURL identifies it (package URL specification).
	PURL          string
	Name, Version string
	// License is an SPDX expression; empty if unknown in that form.
	License string
	// LicenseComment is other information.
	LicenseComment string
	// Files are its paths in the image.
	Files []string
	// DependsOn are the PURLs of components that are linked into its programs.
	DependsOn []string
}

const noAssertion = "NOASSERTION"

// described is the subject of a bill of materials: its ID in the bill, and its purpose (SPDX
// 2.3 section 7.24).
type described struct {
	id      common.ElementID
	purpose string
}

var (
	container = described{"Image", "CONTAINER"}
	archive   = described{"Archive", "ARCHIVE"}
)

// bill returns the bill of materials of an image or an archive for one platform, in SPDX 2.3.
// Its namespace, which has to be unique, is derived from the rest of it.
func bill(what described, name, version string, p v1.Platform, r *Rootfs, components []Component, at time.Time) ([]byte, error) {
	components = slices.SortedFunc(slices.Values(components), func(a, b Component) int { return cmp.Compare(a.PURL, b.PURL) })
	b := builder{what: what.id, rootfs: r, ids: map[string]common.ElementID{}}
	b.doc = &spdx.Document{
		SPDXVersion:    spdx.Version,
		DataLicense:    spdx.DataLicense,
		SPDXIdentifier: "DOCUMENT",
		DocumentName:   name + " " + p.String(),
		CreationInfo: &spdx.CreationInfo{
			Created:  at.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "vipgen-image"}},
		},
		Packages: []*spdx.Package{{
			PackageName: name, PackageSPDXIdentifier: what.id, PackageVersion: version, PrimaryPackagePurpose: what.purpose,
			PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
			IsFilesAnalyzedTagPresent: true,
		}},
	}
	b.relate("DOCUMENT", "DESCRIBES", what.id)
	for _, c := range components {
		if err := b.add(c); err != nil {
			return nil, err
		}
	}
	for _, c := range components {
		for _, d := range c.DependsOn {
			b.relate(b.ids[c.PURL], "DEPENDS_ON", b.ids[d])
		}
	}
	content, err := write(b.doc)
	if err != nil {
		return nil, err
	}
	b.doc.DocumentNamespace = fmt.Sprintf("https://github.com/vipgen/vipgen/spdx/%s-%s-%x", plain(name), p.Architecture, sha256.Sum256(content))
	return write(b.doc)
}

func write(doc *spdx.Document) ([]byte, error) {
	var out bytes.Buffer
	err := spdxjson.Write(doc, &out, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
	return out.Bytes(), err
}

type builder struct {
	what   common.ElementID
	doc    *spdx.Document
	rootfs *Rootfs
	ids    map[string]common.ElementID
}

func (b *builder) relate(from common.ElementID, how string, to common.ElementID) {
	b.doc.Relationships = append(b.doc.Relationships, &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
	})
}

func (b *builder) add(c Component) error {
	if _, ok := b.ids[c.PURL]; ok {
		return fmt.Errorf("component %s is listed twice", c.PURL)
	}
	id := elementID("Package", c.PURL)
	b.ids[c.PURL] = id
	b.doc.Packages = append(b.doc.Packages, &spdx.Package{
		PackageName: c.Name, PackageSPDXIdentifier: id, PackageVersion: c.Version,
		PackageDownloadLocation: noAssertion, PackageCopyrightText: noAssertion,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: cmp.Or(c.License, noAssertion), PackageLicenseComments: c.LicenseComment,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: c.PURL}},
		IsFilesAnalyzedTagPresent: true,
	})
	b.relate(b.what, "CONTAINS", id)
	for _, path := range c.Files {
		file, err := b.file(path)
		if err != nil {
			return err
		}
		b.relate(id, "CONTAINS", file)
	}
	return nil
}

func (b *builder) file(path string) (common.ElementID, error) {
	f, ok := b.rootfs.files[path]
	if !ok || !f.Mode.IsRegular() {
		return "", fmt.Errorf("%s is not among the files", path)
	}
	from, err := f.open()
	if err != nil {
		return "", err
	}
	defer from.Close()
	// SPDX 2.3 section 8.4 requires SHA-1.
	one, two := sha1.New(), sha256.New()
	if _, err := io.Copy(io.MultiWriter(one, two), from); err != nil {
		return "", err
	}
	id := elementID("File", path)
	b.doc.Files = append(b.doc.Files, &spdx.File{
		FileName: "." + path, FileSPDXIdentifier: id, FileCopyrightText: noAssertion,
		LicenseConcluded: noAssertion, LicenseInfoInFiles: []string{noAssertion},
		Checksums: []common.Checksum{
			{Algorithm: common.SHA1, Value: hex.EncodeToString(one.Sum(nil))},
			{Algorithm: common.SHA256, Value: hex.EncodeToString(two.Sum(nil))},
		},
	})
	return id, nil
}

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func plain(s string) string { return strings.Trim(notInIDs.ReplaceAllString(s, "-"), "-") }

// elementID returns a readable ID, made unique by the first bytes of a checksum, as different
// names may differ in characters that IDs cannot hold.
func elementID(kind, name string) common.ElementID {
	hash := sha256.Sum256([]byte(name))
	return common.ElementID(fmt.Sprintf("%s-%s-%x", kind, plain(name), hash[:4]))
}
