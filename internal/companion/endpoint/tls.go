package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// handshake runs the TLS handshake, or adds a finding. The certificate is checked afterwards,
// so that one report has everything; no secret is sent.
func (v *visit) handshake(ctx context.Context, conn net.Conn) *tls.Conn {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	secure := tls.Client(conn, &tls.Config{
		ServerName:         v.sni(),
		InsecureSkipVerify: true,
		NextProtos:         []string{"http/1.1"},
	})
	err := secure.HandshakeContext(ctx)
	if err == nil {
		v.TLS = tls.VersionName(secure.ConnectionState().Version)
		return secure
	}
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP/"):
		v.find(codeNoTLS, fmt.Sprintf("%s speaks HTTP without TLS", v.Address), noTLSNext)
	case errors.As(err, &record):
		v.find(codeNoTLS, fmt.Sprintf("%s does not speak TLS", v.Address), noTLSNext)
	case timedOut(err):
		v.find(codeHangs, fmt.Sprintf("%s accepts the connection and sends nothing for %v", v.Address, v.Timeout),
			"the program behind it hangs, or a load balancer has accepted the connection and reaches no API server: look at /readyz of each control-plane node by its own address")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		v.find(codeClosed, fmt.Sprintf("%s accepts the connection and closes it", v.Address),
			"a load balancer in front has no API server that works, or does not pass TLS through: look at /readyz of each control-plane node by its own address")
	case errors.As(err, &alert) && alert.Op == "remote error": // the Op of alerts in crypto/tls
		v.find(codeTLSFailed, fmt.Sprintf("%s refuses the handshake: %v", v.Address, alert.Err),
			"the server has no certificate for "+v.ServerName+", or requires other versions of TLS: see its log")
	default:
		v.find(codeTLSFailed, fmt.Sprintf("the handshake with %s fails: %v", v.Address, plain(err)), "see the log of the server")
	}
	return nil
}

const noTLSNext = "that is another service, or another port: Kubernetes APIs are usually at 6443"

// sni returns the server name for the handshake; none for an address (RFC 6066 section 3).
func (v *visit) sni() string {
	if _, err := netip.ParseAddr(v.ServerName); err == nil {
		return ""
	}
	return v.ServerName
}
