package image

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// signature holds the signature of checksums: base64 of ASN.1 ECDSA, as in cosign.
	signature = checksums + ".sig"
	// attestation is SLSA provenance: an in-toto statement in a DSSE envelope.
	attestation = "provenance.intoto.jsonl"

	repository    = "https://" + modulePath
	payloadType   = "application/vnd.in-toto+json"
	predicateType = "https://slsa.dev/provenance/v1"
)

// Signer signs releases with an ECDSA key on P-256. The same key and message give the same
// signature (RFC 6979), so that a signed release is as reproducible as its files.
type Signer struct{ key *ecdsa.PrivateKey }

// ReadSigner reads a private key in PEM: PKCS #8, or SEC 1 as OpenSSL writes it.
func ReadSigner(file string) (*Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if k, ok := key.(*ecdsa.PrivateKey); ok && k.Curve == elliptic.P256() {
			return &Signer{k}, nil
		}
		return nil, fmt.Errorf("%s: the key is not ECDSA on P-256", file)
	}
	return nil, fmt.Errorf("%s: no private key in PEM without encryption: make one with 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256'", file)
}

// Sign implements dsse.Signer.
func (s *Signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	return s.key.Sign(nil, sum[:], crypto.SHA256)
}

// KeyID implements dsse.Signer: verifiers have the key.
func (s *Signer) KeyID() (string, error) { return "", nil }

// sign writes the signature of the checksums of a release, and its provenance.
func (r Release) sign(ctx context.Context, dir, commit string) error {
	sums, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		return err
	}
	sig, err := r.Signer.Sign(ctx, sums)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, signature), []byte(base64.StdEncoding.EncodeToString(sig)+"\n"), 0o644); err != nil {
		return err
	}
	body, err := r.provenance(string(sums), commit)
	if err != nil {
		return err
	}
	signer, err := dsse.NewEnvelopeSigner(r.Signer)
	if err != nil {
		return err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, body)
	if err != nil {
		return err
	}
	line, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, attestation), append(line, '\n'), 0o644)
}

// provenance returns the statement of the source and the build of each file with a checksum. It
// has no time and no host: the same source gives the same statement.
func (r Release) provenance(sums, commit string) ([]byte, error) {
	parameters, err := structpb.NewStruct(map[string]any{
		"version": r.Version, "name": r.Name, "archives": platformNames(r.Archives), "platforms": platformNames(r.Image),
	})
	if err != nil {
		return nil, err
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          repository + "/blob/main/docs/install.md#check-it",
			ExternalParameters: parameters,
			ResolvedDependencies: []*statement.ResourceDescriptor{{
				Uri: "git+" + repository, Digest: map[string]string{"gitCommit": commit},
			}},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: repository + "/blob/main/CONTRIBUTING.md#releases"}},
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	data, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	if err := protojson.Unmarshal(data, predicate); err != nil {
		return nil, err
	}
	s := &statement.Statement{Type: statement.StatementTypeUri, PredicateType: predicateType, Predicate: predicate}
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		s.Subject = append(s.Subject, &statement.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if data, err = protojson.Marshal(s); err != nil {
		return nil, err
	}
	var compact bytes.Buffer // protojson varies its white space on purpose
	err = json.Compact(&compact, data)
	return compact.Bytes(), err
}

// platformNames returns the names of platforms, as a list for protobuf.
func platformNames(list []v1.Platform) (out []any) {
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// commit returns the commit of the checkout, which must be clean.
func (s Source) commit(ctx context.Context) (string, error) {
	out, err := s.git(ctx, "status", "--porcelain")
	if err != nil {
		return "", fmt.Errorf("provenance names a commit, so a signed release needs a clone: %w", err)
	}
	if out != "" {
		return "", errors.New("provenance names a commit, and the source has changes: commit them first, or remove the files\n" + out)
	}
	return s.git(ctx, "rev-parse", "HEAD")
}

func (s Source) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = s.Dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
