// Package authority makes the certificates of a lab's cluster.
package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is the validity of certificates: longer than any lab runs.
const lifetime = 30 * 24 * time.Hour

// Authority is a certificate authority.
type Authority struct {
	// CertPEM is its own certificate.
	CertPEM []byte
	keyPEM  []byte
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
}

// KeyPair is a certificate and its private key, both PEM.
type KeyPair struct{ Cert, Key []byte }

// Both returns certificate and key in one text, as in kubelet's files.
func (p KeyPair) Both() []byte { return append(bytes.Clone(p.Cert), p.Key...) }

// TLS returns the pair in the form of crypto/tls.
func (p KeyPair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// New makes a self-signed authority with the given name.
func New(name string) (*Authority, error) {
	a := &Authority{}
	pair, err := a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Cert)
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	a.CertPEM, a.keyPEM = pair.Cert, pair.Key
	return a, nil
}

// Pair returns its own certificate and key, for another signer in its name.
func (a *Authority) Pair() KeyPair { return KeyPair{a.CertPEM, a.keyPEM} }

// Pool returns a pool with the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Serving makes a server's certificate with these names and addresses, the first of which is
// its subject.
func (a *Authority) Serving(names ...string) (KeyPair, error) {
	return a.serving([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, names)
}

// Peer makes a certificate like Serving that is also valid for clients.
func (a *Authority) Peer(names ...string) (KeyPair, error) {
	return a.serving([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, names)
}

func (a *Authority) serving(usage []x509.ExtKeyUsage, names []string) (KeyPair, error) {
	if len(names) == 0 {
		return KeyPair{}, errors.New("making a serving certificate: it needs a name")
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usage,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.sign(template)
}

// Client makes the certificate of a user of the Kubernetes API in the given groups.
func (a *Authority) Client(user string, groups ...string) (KeyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Expired makes an expired certificate with the subject, names and usage of another one.
func (a *Authority) Expired(p KeyPair) (KeyPair, error) {
	pair, err := p.TLS()
	if err != nil {
		return KeyPair{}, err
	}
	template := *pair.Leaf
	template.NotAfter = time.Now().Add(-time.Minute)
	return a.sign(&template)
}

// sign makes a certificate with a new key. The authority's own, which is the first, is
// self-signed.
func (a *Authority) sign(template *x509.Certificate) (KeyPair, error) {
	pair, err := a.issue(template)
	if err != nil {
		return KeyPair{}, fmt.Errorf("making the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair, nil
}

func (a *Authority) issue(template *x509.Certificate) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer, a.key = template, key, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return KeyPair{}, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(lifetime)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return KeyPair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
