package image

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/vipgen/vipgen/internal/testkit"
)

// readBill reads the bill of materials of an image or an archive, and has the library check it.
func readBill(t *testing.T, what described, text []byte) *spdx.Document {
	t.Helper()
	doc, err := spdxjson.Read(bytes.NewReader(text))
	testkit.Must(t, err)
	testkit.Must(t, spdxlib.ValidateDocument(doc))
	described, err := spdxlib.GetDescribedPackageIDs(doc)
	if err != nil || !slices.Equal(described, []common.ElementID{what.id}) {
		t.Errorf("it describes %v, %v", described, err)
	}
	if doc.SPDXVersion != "SPDX-2.3" || doc.CreationInfo.Created != "1970-01-01T00:00:00Z" || !strings.HasPrefix(doc.DocumentNamespace, "https://") {
		t.Errorf("%s, %s, %s", doc.SPDXVersion, doc.CreationInfo.Created, doc.DocumentNamespace)
	}
	ids := map[common.ElementID]bool{}
	for _, p := range doc.Packages {
		if ids[p.PackageSPDXIdentifier] || !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(string(p.PackageSPDXIdentifier)) {
			t.Errorf("ID %q is taken, or not valid", p.PackageSPDXIdentifier)
		}
		ids[p.PackageSPDXIdentifier] = true
	}
	return doc
}

// licensesSeen are the licenses of vipgen's modules. Review a new one by hand.
var licensesSeen = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-SA-4.0", "ISC", "MIT"}

func TestVipgenBill(t *testing.T) {
	namespaces := map[string]bool{}
	for _, c := range vipgenImage(t).Contents {
		doc := readBill(t, container, c.SBOM)
		if namespaces[doc.DocumentNamespace] {
			t.Errorf("%s: another one has its namespace", c.Platform)
		}
		namespaces[doc.DocumentNamespace] = true
		if inside := c.Rootfs.files["/usr/share/doc/vipgen/sbom.spdx.json"]; !bytes.Equal(inside.Data, c.SBOM) {
			t.Errorf("%s: the one in the image is another one", c.Platform)
		}
		listed := map[string]string{}
		for _, p := range doc.Packages[1:] {
			listed[p.PackageName] = p.PackageVersion
			for license := range strings.SplitSeq(p.PackageLicenseDeclared, " AND ") {
				if !slices.Contains(licensesSeen, license) {
					t.Errorf("%s: licence %s", p.PackageName, p.PackageLicenseDeclared)
				}
			}
		}
		testkit.Equal(t, "v1.2.3-test", listed[modulePath])
		for _, name := range programs {
			_, deps, err := modules(c.Rootfs.files["/usr/bin/"+name].Source)
			testkit.Must(t, err)
			for _, d := range deps {
				if listed[d.Path] != d.Version || d.Version == "" {
					t.Errorf("%s: %s has %s %q, the bill %q", c.Platform, name, d.Path, d.Version, listed[d.Path])
				}
			}
		}
		checkSums(t, doc, &c)
	}
}

// checkSums compares the checksums of a bill with the image's files.
func checkSums(t *testing.T, doc *spdx.Document, c *Content) {
	t.Helper()
	if len(doc.Files) == 0 {
		t.Error("no files")
	}
	for _, f := range doc.Files {
		from, err := c.Rootfs.files[strings.TrimPrefix(f.FileName, ".")].open()
		testkit.Must(t, err)
		got := sumOf(t, from)
		from.Close()
		if !slices.ContainsFunc(f.Checksums, func(s common.Checksum) bool { return s.Algorithm == common.SHA256 && s.Value == got }) {
			t.Errorf("%s: %v, want %s", f.FileName, f.Checksums, got)
		}
	}
}

// TestDaemonBills: every file of an image from Debian belongs to a package.
func TestDaemonBills(t *testing.T) {
	for _, i := range daemonImages(t) {
		c := &i.Contents[0]
		doc := readBill(t, container, c.SBOM)
		checkSums(t, doc, c)
		listed := map[string]bool{}
		for _, f := range doc.Files {
			listed[strings.TrimPrefix(f.FileName, ".")] = true
		}
		for _, f := range c.Rootfs.Files() {
			if f.Mode.IsRegular() && !listed[f.Path] && !strings.HasPrefix(f.Path, "/usr/share/doc/") {
				t.Errorf("%s: the bill lacks %s", i.Name, f.Path)
			}
		}
		for _, p := range doc.Packages[1:] {
			if purl := p.PackageExternalReferences[0].Locator; !strings.HasPrefix(purl, "pkg:deb/debian/") && !strings.HasPrefix(purl, "pkg:golang/") {
				t.Errorf("%s: %s", i.Name, purl)
			}
			if strings.HasPrefix(p.PackageExternalReferences[0].Locator, "pkg:deb/") && c.Rootfs.files["/usr/share/doc/"+p.PackageName+"/copyright"].Path == "" {
				t.Errorf("%s: no licence of %s", i.Name, p.PackageName)
			}
		}
	}
}

func TestDebianLicenses(t *testing.T) {
	for text, want := range map[string]string{
		"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: MIT\n\nFiles: x\nLicense: GPL-2+\n\nLicense: MIT\n text\n": "GPL-2+ MIT",
		"This package was made by hand.\nLicense: whatever it says\n": "",
	} {
		testkit.Equal(t, want, strings.Join(debianLicenses([]byte(text)), " "))
	}
}
