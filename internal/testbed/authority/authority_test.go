package authority

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestCertificates(t *testing.T) {
	ca, err := New("signer")
	testkit.Must(t, err)
	tests := []struct {
		name    string
		make    func() (KeyPair, error)
		subject string
		groups  []string
		usage   x509.ExtKeyUsage
		valid   []string
	}{
		{"serving", func() (KeyPair, error) { return ca.Serving("a.example.com", "192.0.2.1", "2001:db8::1") }, "a.example.com", nil,
			x509.ExtKeyUsageServerAuth, []string{"a.example.com", "192.0.2.1", "2001:db8::1"}},
		{"client", func() (KeyPair, error) { return ca.Client("system:node:a", "system:nodes") }, "system:node:a", []string{"system:nodes"},
			x509.ExtKeyUsageClientAuth, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pair, err := tt.make()
			testkit.Must(t, err)
			cert, err := pair.TLS()
			testkit.Must(t, err)
			leaf := cert.Leaf
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: []x509.ExtKeyUsage{tt.usage}}); err != nil {
				t.Error(err)
			}
			if leaf.Subject.CommonName != tt.subject || !slices.Equal(leaf.Subject.Organization, tt.groups) {
				t.Errorf("the subject is %v", leaf.Subject)
			}
			for _, name := range tt.valid {
				testkit.Check(t, leaf.VerifyHostname(name))
			}
			if both := string(pair.Both()); !strings.HasPrefix(both, string(pair.Cert)) || !strings.HasSuffix(both, string(pair.Key)) {
				t.Errorf("both are\n%s", both)
			}
		})
	}
	if _, err := ca.Serving(); err == nil {
		t.Error("a server without a name got a certificate")
	}
}
