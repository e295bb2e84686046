package rig

import (
	"encoding/json"
	"net"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Kubeconfig returns a kubeconfig for the API server of a host, with new credentials.
func Kubeconfig(t testing.TB, ca *authority.Authority, host, user string, groups ...string) []byte {
	t.Helper()
	pair, err := ca.Client(user, groups...)
	testkit.Must(t, err)
	type object map[string]any
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []object{{"name": "c", "cluster": object{"server": "https://" + net.JoinHostPort(host, "6443"), "certificate-authority-data": ca.CertPEM}}},
		"users":    []object{{"name": "u", "user": object{"client-certificate-data": pair.Cert, "client-key-data": pair.Key}}},
		"contexts": []object{{"name": "x", "context": object{"cluster": "c", "user": "u"}}},
	})
	testkit.Must(t, err)
	return config
}
