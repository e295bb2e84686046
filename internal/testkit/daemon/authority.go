package daemon

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/authority"
)

// Authority is a certificate authority for a test.
type Authority struct {
	*authority.Authority
	t testing.TB
}

// NewAuthority makes a certificate authority.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	ca, err := authority.New(name)
	testkit.Must(t, err)
	return &Authority{ca, t}
}

// Serving makes a certificate of a server with these names and addresses.
func (a *Authority) Serving(names ...string) authority.KeyPair {
	a.t.Helper()
	pair, err := a.Authority.Serving(names...)
	testkit.Must(a.t, err)
	return pair
}

// Client makes a certificate of a user of the Kubernetes API, who is in groups.
func (a *Authority) Client(user string, groups ...string) authority.KeyPair {
	a.t.Helper()
	pair, err := a.Authority.Client(user, groups...)
	testkit.Must(a.t, err)
	return pair
}
