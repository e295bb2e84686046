package endpoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// pair is a certificate with its key and issuer; a nil issuer means self-signed.
type pair struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issuer *pair
}

// option changes a certificate before it is signed.
type option func(*x509.Certificate)

func lasting(from, to time.Duration) option {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
}

func forUse(usage x509.ExtKeyUsage) option {
	return func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{usage} }
}

func forNames(names ...string) option {
	return func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, name)
			}
		}
	}
}

func authority(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
}

// issue returns a certificate that is valid for a month around now; a nil issuer makes it
// self-signed.
func issue(t *testing.T, name string, issuer *pair, options ...option) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}}
	for _, o := range append([]option{lasting(-time.Hour, 30*24*time.Hour)}, options...) {
		o(template)
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	testkit.Must(t, err)
	cert, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	return &pair{cert, key, issuer}
}

// serving returns a server's chain: its certificate, then others.
func (p *pair) serving(others ...*pair) *tls.Certificate {
	c := &tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key}
	for _, o := range others {
		c.Certificate = append(c.Certificate, o.cert.Raw)
	}
	return c
}

// trusting returns a client's --ca with these certificates.
func trusting(t *testing.T, list ...*pair) Authorities {
	t.Helper()
	var file []byte
	for _, p := range list {
		file = slices.Concat(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}))
	}
	a, err := ReadAuthorities(file)
	testkit.Must(t, err)
	return a
}
