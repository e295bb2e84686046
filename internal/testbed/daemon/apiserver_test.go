package daemon

import (
	"crypto/tls"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestAPIServer(t *testing.T) {
	testkit.Live(t)
	s := NewAPIServer(t, "demo.example.com")
	s.Create("/api/v1/nodes", []byte("{apiVersion: v1, kind: Node, metadata: {name: master-0}}"))

	for sni, want := range map[string]string{
		"":                         "kubernetes.default.svc",
		"localhost":                "localhost",
		"api-int.demo.example.com": "api-int.demo.example.com",
	} {
		conn, err := tls.Dial("tcp", s.Addr.String(), &tls.Config{ServerName: sni, InsecureSkipVerify: true})
		testkit.Must(t, err)
		testkit.Equal(testkit.In(t, sni), want, conn.ConnectionState().PeerCertificates[0].DNSNames[0])
		conn.Close()
	}

	s.Stop()
	s.Start()
	// The object still exists, or there would be nothing to change.
	s.Patch("/api/v1/nodes/master-0", []byte("{metadata: {labels: {a: b}}}"))
}
