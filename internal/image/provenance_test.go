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
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
		if first[name] != sum {
			t.Errorf("%s: other bytes when it is signed again", name)
		}
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
	for _, want := range []string{`"gitCommit":"` + commit + `"`, `"version":"v1.2.3"`, `"_type":"https://in-toto.io/Statement/v1"`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %s in %s", want, body)
		}
	}
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
		if _, err := ReadSigner(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

// TestCommit: provenance names a commit only if the source equals it.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	s := Source{Dir: dir}
	if _, err := s.commit(t.Context()); err == nil || !strings.Contains(err.Error(), "needs a clone") {
		t.Errorf("outside of a clone: %v", err)
	}
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
	if _, err := s.commit(t.Context()); err == nil || !strings.Contains(err.Error(), "commit them first") {
		t.Errorf("with changes: %v", err)
	}
}
