package image

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"

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

// verifier verifies with a public key, as cosign does.
type verifier struct{ key *ecdsa.PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if sum := sha256.Sum256(data); !ecdsa.VerifyASN1(v.key, sum[:], sig) {
		return errors.New("wrong signature")
	}
	return nil
}
func (v verifier) KeyID() (string, error)   { return "", nil }
func (v verifier) Public() crypto.PublicKey { return v.key }

// writeKey writes a private key, as `openssl genpkey` does.
func writeKey(t *testing.T, curve elliptic.Curve) (file string, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	testkit.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Must(t, err)
	file = filepath.Join(t.TempDir(), "release.key")
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return file, key
}

// TestSign signs a release and verifies both files with the public key alone; verification
// fails for a release that was changed afterwards.
func TestSign(t *testing.T) {
	file, key := writeKey(t, elliptic.P256())
	signer, err := ReadSigner(file)
	testkit.Must(t, err)
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "vipgen-v1.2.3-linux-amd64.tar.gz"), []byte("archive"), 0o644))
	testkit.Must(t, writeChecksums(dir))
	linux := []v1.Platform{{OS: "linux", Architecture: "amd64"}}
	r := Release{Source: Source{top, "v1.2.3"}, Archives: linux, Image: linux, Name: "registry.example.com/vipgen:v1.2.3", Signer: signer}
	commit := strings.Repeat("a", 40)
	testkit.Must(t, r.sign(t.Context(), dir, commit))
	first := sumsOf(t, dir)
	testkit.Must(t, r.sign(t.Context(), dir, commit))
	for name, sum := range sumsOf(t, dir) {
		testkit.Equal(testkit.In(t, name), sum, first[name])
	}

	public := verifier{&key.PublicKey}
	sums := testkit.ReadFile(t, filepath.Join(dir, checksums))
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(testkit.ReadFile(t, filepath.Join(dir, signature)))))
	testkit.Must(t, err)
	verifyWithOpenSSL(t, dir, key, sig)

	var envelope dsse.Envelope
	testkit.Must(t, json.Unmarshal(testkit.ReadFile(t, filepath.Join(dir, attestation)), &envelope))
	verify, err := dsse.NewEnvelopeVerifier(public)
	testkit.Must(t, err)
	if _, err := verify.Verify(t.Context(), &envelope); err != nil {
		t.Error(err)
	}
	body, err := envelope.DecodeB64Payload()
	testkit.Must(t, err)
	var s statement.Statement
	testkit.Must(t, protojson.Unmarshal(body, &s))
	if err := s.Validate(); err != nil || s.PredicateType != predicateType || len(s.Subject) != 1 {
		t.Errorf("%v: %s", err, body)
	}
	if want, _, _ := strings.Cut(string(sums), " "); s.Subject[0].Digest["sha256"] != want {
		t.Errorf("subject %v, want %s", s.Subject[0], want)
	}
	testkit.Contains(t, string(body), `"gitCommit":"`+commit+`"`, `"version":"v1.2.3"`, `"_type":"https://in-toto.io/Statement/v1"`)
	envelope.Payload = base64.StdEncoding.EncodeToString(bytes.Replace(body, []byte("v1.2.3"), []byte("v1.2.4"), 1))
	if _, err := verify.Verify(t.Context(), &envelope); err == nil {
		t.Error("a changed statement is verified")
	}
}

// verifyWithOpenSSL verifies as in docs/install.md.
func verifyWithOpenSSL(t *testing.T, dir string, key *ecdsa.PrivateKey, sig []byte) {
	t.Helper()
	openssl := testkit.Program(t, "openssl")
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testkit.Must(t, err)
	tmp := t.TempDir()
	public, raw := filepath.Join(tmp, "release.pub"), filepath.Join(tmp, "sig")
	for name, data := range map[string][]byte{public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), raw: sig} {
		testkit.Must(t, os.WriteFile(name, data, 0o644))
	}
	testkit.Run(t, exec.Command(openssl, "dgst", "-sha256", "-verify", public, "-signature", raw, filepath.Join(dir, checksums)))
}

func TestReadSigner(t *testing.T) {
	other, _ := writeKey(t, elliptic.P384())
	encrypted := filepath.Join(t.TempDir(), "cosign.key")
	testkit.Must(t, os.WriteFile(encrypted, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: []byte("{}")}), 0o600))
	for file, want := range map[string]string{other: "not ECDSA on P-256", encrypted: "openssl genpkey", "missing": "no such file"} {
		_, err := ReadSigner(file)
		testkit.Fails(testkit.In(t, file), err, want)
	}
}

// TestCommit: provenance names a commit only if the source equals it.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	s := Source{Dir: dir}
	_, err := s.commit(t.Context())
	testkit.Fails(t, err, "needs a clone")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
		testkit.Run(t, cmd)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "First")
	if commit, err := s.commit(t.Context()); err != nil || len(commit) != 40 {
		t.Errorf("%q, %v", commit, err)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o644))
	_, err = s.commit(t.Context())
	testkit.Fails(t, err, "commit them first")
}
