// Package endpoint diagnoses the endpoint of a Kubernetes API as clients see it: DNS,
// TCP, TLS, readiness. It reports what is wrong, and what to do.
package endpoint

import (
	"net/netip"
	"slices"
	"time"
)

// Code names a kind of finding. Codes are part of the interface: none is renamed or
// gets another meaning.
type Code string

const (
	// codeNoSuchName: the name server says that the name has no address.
	codeNoSuchName Code = "no-such-name"
	// codeNoDNS: the name server does not answer, or refuses to.
	codeNoDNS Code = "no-dns"
	// codeRefused: the host answers that nobody listens on the port.
	codeRefused Code = "refused"
	// codeUnreachable: there is no way to the address.
	codeUnreachable Code = "unreachable"
	// codeNoAnswer: nothing comes back at all.
	codeNoAnswer Code = "no-answer"
	// codeHangs: the connection is taken, and then nothing comes.
	codeHangs Code = "hangs"
	// codeClosed: the connection is taken and ended.
	codeClosed Code = "closed"
	// codeNoTLS: whoever answers does not speak TLS.
	codeNoTLS Code = "no-tls"
	// codeTLSFailed: the handshake fails for another reason.
	codeTLSFailed Code = "tls-failed"
	// codeExpired: a certificate of the chain is no longer valid.
	codeExpired Code = "expired"
	// codeNotYetValid: a certificate of the chain is not valid yet.
	codeNotYetValid Code = "not-yet-valid"
	// codeExpiresSoon: the certificate ends sooner than was asked for.
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
	// codeNotReady: the server says that it is not ready.
	codeNotReady Code = "not-ready"
	// codeNotAnAPI: something answers that is no Kubernetes API.
	codeNotAnAPI Code = "not-an-api"
	// codeUnsaid: the server does not tell strangers whether it is ready. No error.
	codeUnsaid Code = "unsaid"
)

// Finding is one thing that is wrong.
type Finding struct {
	Code Code `json:"code"`
	// Address is where, if it is not the same for all addresses.
	Address string `json:"address,omitempty"`
	// What is wrong, and what to do next.
	What string `json:"what"`
	Next string `json:"next"`
	// Note says that clients can live with it.
	Note bool `json:"note,omitempty"`
}

// Report is everything that was seen.
type Report struct {
	// OK says that no finding is more than a note.
	OK   bool   `json:"ok"`
	Host string `json:"host"`
	Port uint16 `json:"port"`
	// ServerName is what the certificate has to be for.
	ServerName string     `json:"serverName"`
	DNS        DNS        `json:"dns"`
	Endpoints  []Endpoint `json:"endpoints"`
	Findings   []Finding  `json:"findings"`
}

// DNS is what the name resolves to.
type DNS struct {
	// By is who was asked: "address" (nobody, it is one), "--resolve", "system" or
	// the address of a name server.
	By string `json:"by"`
	// CNAME is the name that the name stands for, where a name server said so.
	CNAME     string       `json:"cname,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
}

// Endpoint is what was seen at one address.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	// Connected says that the connection was taken, after ConnectMS milliseconds.
	Connected bool  `json:"connected"`
	ConnectMS int64 `json:"connectMS,omitempty"`
	// TLS is the version, such as "TLS 1.3"; empty where there was none.
	TLS string `json:"tls,omitempty"`
	// Chain is what the server sent, its own certificate first.
	Chain []Certificate `json:"chain,omitempty"`
	// NameOK, TrustOK and TimeOK say what of the certificate is right.
	NameOK  bool `json:"nameOK"`
	TrustOK bool `json:"trustOK"`
	TimeOK  bool `json:"timeOK"`
	// Ready is what the server says of itself; nil where it was not asked.
	Ready *Ready `json:"ready,omitempty"`
}

// Certificate is one of a chain.
type Certificate struct {
	Subject   string       `json:"subject"`
	Issuer    string       `json:"issuer"`
	Names     []string     `json:"names,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	NotBefore time.Time    `json:"notBefore"`
	NotAfter  time.Time    `json:"notAfter"`
}

// Ready is what the server says of itself.
type Ready struct {
	Path   string `json:"path"`
	Status int    `json:"status"`
	// Live is the answer at /livez, where Path was not answered with 200.
	Live int `json:"live,omitempty"`
	// Failed are the checks that fail.
	Failed []string `json:"failed,omitempty"`
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

// finish reports whether all is well.
func (r *Report) finish() *Report {
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	r.OK = !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Note })
	return r
}
