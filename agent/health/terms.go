package health

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// value says what the file of a group's term is to say. What is not known is
// not so.
func (b *Board) value(g *v1alpha1.Group, t keepalived.Term) (bool, error) {
	switch t.Name {
	case "lb-path":
		// Traffic to the VIP of a node without the redirect dies (hard case 6).
		return b.ok(FactHAProxy) && b.ok(FactRedirect), nil
	case "lb-or-api":
		return b.ok(FactHAProxy) || b.ok(FactAPI), nil
	case "machine-config":
		return b.ok(FactMachineConfig), nil
	case "dns":
		return b.ok(FactDNS), nil
	case g.Name + "-ready":
		return b.ok(RouterReady(g.Name)), nil
	case g.Name + "-here":
		return b.routerHere(g.Name), nil
	case g.Name + "-away":
		return !b.ok(RouterAnswers(g.Name)), nil
	}
	return false, fmt.Errorf("nobody knows the term %q", t.Name)
}

func (b *Board) ok(name string) bool {
	f, _ := b.Get(name)
	return f.OK
}

// routerHere relies on the router's own word while the API, and with it whose
// router that is, cannot be asked.
func (b *Board) routerHere(group string) bool {
	if f, known := b.Get(RouterHere(group)); known {
		return f.OK
	}
	return b.ok(RouterReady(group))
}
