package endpoint

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
)

// Authorities are the CAs that a client trusts, and the intermediates that it knows.
type Authorities struct {
	roots, others []*x509.Certificate
}

// ReadAuthorities reads certificates in PEM: the self-signed ones are CAs, or all of them if
// none is.
func ReadAuthorities(data []byte) (Authorities, error) {
	var a Authorities
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return a, fmt.Errorf("a certificate that cannot be read: %w", err)
		}
		if selfSigned(c) {
			a.roots = append(a.roots, c)
		} else {
			a.others = append(a.others, c)
		}
	}
	if len(a.roots) == 0 {
		a.roots, a.others = a.others, nil
	}
	if len(a.roots) == 0 {
		return a, errors.New("no certificate")
	}
	return a, nil
}

func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func pool(list []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range list {
		p.AddCert(c)
	}
	return p
}

// checkCertificate checks names, time and trust separately, so that each problem is reported.
func (v *visit) checkCertificate(chain []*x509.Certificate) {
	v.Chain = lists.Map(chain, describe)
	leaf := chain[0] // TLS has at least one
	v.NameOK = v.checkName(leaf)
	v.TimeOK = v.checkTime(chain)
	v.TrustOK = v.checkTrust(chain)
}

func describe(c *x509.Certificate) Certificate {
	out := Certificate{Subject: c.Subject.String(), Issuer: c.Issuer.String(), Names: c.DNSNames, NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC()}
	for _, ip := range c.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out.Addresses = append(out.Addresses, a.Unmap())
		}
	}
	return out
}

// fallbackName is in the certificate that kube-apiserver presents for an unknown server name.
const fallbackName = "kubernetes.default.svc"

func (v *visit) checkName(leaf *x509.Certificate) bool {
	if leaf.VerifyHostname(v.ServerName) == nil {
		return true
	}
	what := fmt.Sprintf("the certificate of %s is not for %s but for %s", v.Address, v.ServerName, subjects(leaf))
	name := publicName(leaf)
	var next string
	if v.sni() == "" {
		next = "use a name: a client that connects to an address sends no server name, and gets the certificate that the server has for all such clients. " +
			"With kubectl or oc: tls-server-name in the kubeconfig, or --tls-server-name; here: --server-name NAME"
		if name != "" {
			next = strings.ReplaceAll(next, "--server-name NAME", "--server-name "+name)
		}
	} else {
		next = fmt.Sprintf("give the API server a certificate for %s: a Secret in openshift-config, by spec.servingCerts.namedCertificates of the APIServer object cluster", v.ServerName)
		if name != "" {
			next = fmt.Sprintf("have clients use %s, which has to resolve to this address for them, or %s", name, next)
		} else if slices.Contains(leaf.DNSNames, fallbackName) {
			next = "the API server presents it for unknown names. Have clients use api.CLUSTER.DOMAIN, or " + next
		}
	}
	v.find(codeWrongName, what, next)
	return false
}

func subjects(c *x509.Certificate) string {
	list := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return fmt.Sprintf("nothing (its subject alternative names are missing; the common name %q does not count)", c.Subject.CommonName)
	}
	const most = 12
	if len(list) > most {
		list = append(list[:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, ", ")
}

// publicName returns a name of a certificate that clients outside of the cluster use.
func publicName(c *x509.Certificate) string {
	for _, name := range c.DNSNames {
		if strings.Contains(name, ".") && !strings.Contains(name, "*") && !strings.HasPrefix(name, "api-int.") &&
			!strings.HasPrefix(name, "kubernetes.") && !strings.HasPrefix(name, "openshift.") {
			return name
		}
	}
	return ""
}

func (v *visit) checkTime(chain []*x509.Certificate) bool {
	now, ok := v.Now(), true
	for i, c := range chain {
		whose := "the certificate of " + v.Address.String()
		if i > 0 {
			whose = fmt.Sprintf("the certificate of %q in the chain of %s", c.Subject, v.Address)
		}
		switch {
		case now.After(c.NotAfter):
			ok = false
			v.find(codeExpired, fmt.Sprintf("%s is valid until %s", whose, c.NotAfter.UTC().Format(time.RFC3339)),
				"renew it: one that OpenShift makes is renewed by kube-apiserver's operator ('oc get clusteroperator kube-apiserver'), one of --hostname by the owner of its Secret. If that date is in the future, the clock of this machine is wrong")
		case now.Before(c.NotBefore):
			ok = false
			v.find(codeNotYetValid, fmt.Sprintf("%s is valid from %s", whose, c.NotBefore.UTC().Format(time.RFC3339)),
				"compare the clocks of this machine and of the control-plane nodes")
		case i == 0 && v.ExpiresWithin > 0 && c.NotAfter.Sub(now) < v.ExpiresWithin:
			v.find(codeExpiresSoon, fmt.Sprintf("%s is valid until %s, less than %v", whose, c.NotAfter.UTC().Format(time.RFC3339), v.ExpiresWithin),
				"renew it in time, or see why it is not renewed: 'oc get clusteroperator kube-apiserver'")
		}
	}
	return ok
}

// checkTrust follows the chain to a CA that the client knows, at a time at which the server's
// certificate is valid.
func (v *visit) checkTrust(chain []*x509.Certificate) bool {
	o := x509.VerifyOptions{Intermediates: pool(chain[1:]), CurrentTime: within(chain[0], v.Now()),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if len(v.CAs.roots) > 0 { // else the system's
		o.Roots = pool(v.CAs.roots)
	}
	_, err := chain[0].Verify(o)
	if err == nil {
		return true
	}
	for _, c := range v.CAs.others {
		o.Intermediates.AddCert(c)
	}
	if _, again := chain[0].Verify(o); again == nil {
		v.find(codeMissingIntermediate, fmt.Sprintf("%s does not send its whole chain: what comes after %q is in --ca alone", v.Address, lastSent(chain).Subject),
			fmt.Sprintf("put the certificate of %q after the server's own in the server's file or Secret", lastSent(chain).Issuer))
		return false
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	last := lastSent(chain)
	switch {
	case errors.As(err, &unknown) && selfSigned(last):
		v.find(codeUnknownCA, fmt.Sprintf("the certificate of %s comes from %q, which this client does not know", v.Address, last.Subject), v.caNext())
	case errors.As(err, &unknown):
		v.find(codeUnknownIssuer, fmt.Sprintf("the certificate of %q, sent by %s, comes from %q, which the server does not send and this client does not know", last.Subject, v.Address, last.Issuer),
			fmt.Sprintf("if %q signs itself, it is a CA that this client lacks: %s. If not, it is an intermediate, which belongs after the server's own certificate in the server's file or Secret", last.Issuer, v.caNext()))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return true // reported already
	default:
		v.find(codeBadChain, fmt.Sprintf("the certificate of %s is invalid: %v", v.Address, err), "issue it again, for use by a server, with a complete chain")
	}
	return false
}

func (v *visit) caNext() string {
	if len(v.CAs.roots) > 0 {
		return "give its certificate with --ca; that of an OpenShift cluster is in its kubeconfig, certificate-authority-data"
	}
	return "give its certificate with --ca (this was checked with the CAs of this machine); that of an OpenShift cluster is in its kubeconfig, certificate-authority-data"
}

// lastSent follows the chain that the server sent, from its own certificate up, and returns the
// last one.
func lastSent(chain []*x509.Certificate) *x509.Certificate {
	at := chain[0]
	for range chain {
		i := slices.IndexFunc(chain, func(c *x509.Certificate) bool {
			return !c.Equal(at) && bytes.Equal(c.RawSubject, at.RawIssuer) && at.CheckSignatureFrom(c) == nil
		})
		if i < 0 || selfSigned(at) {
			break
		}
		at = chain[i]
	}
	return at
}

// within returns the time nearest to now at which a certificate is valid.
func within(c *x509.Certificate, now time.Time) time.Time {
	switch {
	case now.After(c.NotAfter):
		return c.NotAfter
	case now.Before(c.NotBefore):
		return c.NotBefore
	}
	return now
}
