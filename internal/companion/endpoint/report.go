// Package endpoint diagnoses the endpoint of a Kubernetes API as clients see it: DNS,
// TCP, TLS, readiness. It reports what is wrong, and what to do.
package endpoint

import (
	"net/netip"
	"slices"
	"time"
)

// Code names a kind of finding. Codes are part of the interface: none is renamed or gets
// another meaning.
type Code string

const (
	// codeNoSuchName: the name has no address, by the name server.
	codeNoSuchName Code = "no-such-name"
	// codeNoDNS: the name server does not answer, or refuses to.
	codeNoDNS Code = "no-dns"
	// codeRefused: nothing listens on the port, by the host's answer.
	codeRefused Code = "refused"
	// codeUnreachable: there is no route to the address.
	codeUnreachable Code = "unreachable"
	// codeNoAnswer: no packet comes back.
	codeNoAnswer Code = "no-answer"
	// codeHangs: the connection is accepted, without any answer.
	codeHangs Code = "hangs"
	// codeClosed: the connection is accepted and closed.
	codeClosed Code = "closed"
	// codeNoTLS: the server does not speak TLS.
	codeNoTLS Code = "no-tls"
	// codeTLSFailed: the handshake fails for another reason.
	codeTLSFailed Code = "tls-failed"
	// codeExpired: a certificate of the chain is no longer valid.
	codeExpired Code = "expired"
	// codeNotYetValid: a certificate of the chain is not valid yet.
	codeNotYetValid Code = "not-yet-valid"
	// codeExpiresSoon: the certificate expires within the given time.
	codeExpiresSoon Code = "expires-soon"
	// codeWrongName: the certificate is for other names.
	codeWrongName Code = "wrong-name"
	// codeUnknownCA: the chain ends at a CA that this client does not know.
	codeUnknownCA Code = "unknown-ca"
	// codeUnknownIssuer: the chain ends at a certificate whose issuer the server does
	// not send and this client does not know: a CA, or a missing intermediate.
	codeUnknownIssuer Code = "unknown-issuer"
	// codeMissingIntermediate: the server does not send a certificate that belongs into
	// the chain.
	codeMissingIntermediate Code = "missing-intermediate"
	// codeBadChain: the chain is wrong in another way.
	codeBadChain Code = "bad-chain"
	// codeNotReady: the server reports that it is not ready.
	codeNotReady Code = "not-ready"
	// codeNotAnAPI: the server is not a Kubernetes API.
	codeNotAnAPI Code = "not-an-api"
	// codeUnsaid: the server hides its readiness from anonymous clients. No error.
	codeUnsaid Code = "unsaid"
)

// Finding is a problem, or a note.
type Finding struct {
	Code Code `json:"code"`
	// Address is the checked address, if the finding is not the same for all.
	Address string `json:"address,omitempty"`
	// What is wrong, and what to do next.
	What string `json:"what"`
	Next string `json:"next"`
	// Note is set where clients still work.
	Note bool `json:"note,omitempty"`
}

// Report is the result of Check.
type Report struct {
	// OK is set if all findings are notes.
	OK   bool   `json:"ok"`
	Host string `json:"host"`
	Port uint16 `json:"port"`
	// ServerName is the required name in the certificate.
	ServerName string     `json:"serverName"`
	DNS        DNS        `json:"dns"`
	Endpoints  []Endpoint `json:"endpoints"`
	Findings   []Finding  `json:"findings"`
}

// DNS is the result of name resolution.
type DNS struct {
	// By is the source: "address" (none, it is one), "--resolve", "system" or the address of a
	// name server.
	By string `json:"by"`
	// CNAME is the canonical name, where a name server returned one.
	CNAME     string       `json:"cname,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
}

// Endpoint is the result for one address.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	// Connected is set if the connection was accepted, after ConnectMS milliseconds.
	Connected bool  `json:"connected"`
	ConnectMS int64 `json:"connectMS,omitempty"`
	// TLS is the version, such as "TLS 1.3"; empty where there was none.
	TLS string `json:"tls,omitempty"`
	// Chain is the server's chain, its own certificate first.
	Chain []Certificate `json:"chain,omitempty"`
	// NameOK, TrustOK and TimeOK are the results of the checks of the certificate.
	NameOK  bool `json:"nameOK"`
	TrustOK bool `json:"trustOK"`
	TimeOK  bool `json:"timeOK"`
	// Ready is the server's readiness; nil where it was not requested.
	Ready *Ready `json:"ready,omitempty"`
}

// Certificate is a certificate of a chain.
type Certificate struct {
	Subject   string       `json:"subject"`
	Issuer    string       `json:"issuer"`
	Names     []string     `json:"names,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	NotBefore time.Time    `json:"notBefore"`
	NotAfter  time.Time    `json:"notAfter"`
}

// Ready is the server's readiness.
type Ready struct {
	Path   string `json:"path"`
	Status int    `json:"status"`
	// Live is the status of /livez, where that of Path was not 200.
	Live int `json:"live,omitempty"`
	// Failed are the failed checks.
	Failed []string `json:"failed,omitempty"`
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

func (r *Report) finish() *Report {
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	r.OK = !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Note })
	return r
}
