package health

import (
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Health returns the health of a group's services by the facts.
func (b *Board) Health(g *v1alpha1.Group) vrrp.Health {
	return vrrp.Health{
		HAProxy:       b.isTrue(FactHAProxy),
		Unready:       b.isFalse(factReady),
		Redirect:      b.isTrue(Redirect(g)),
		Restarting:    b.isTrue(FactRestarting),
		API:           b.isTrue(FactAPI),
		MachineConfig: b.isTrue(factMachineConfig),
		DNS:           b.isTrue(FactDNS),
		RouterAnswers: b.isTrue(routerAnswers(g.Name)),
		RouterReady:   b.isTrue(RouterReady(g.Name)),
		RouterHere:    b.isTrue(RouterHere(g.Name)),
		RouterForeign: b.isFalse(RouterOwn(g.Name)),
	}
}

// isFalse reports whether a fact is known to be false.
func (b *Board) isFalse(name string) bool {
	f, known := b.Get(name)
	return known && !f.OK
}

func (b *Board) isTrue(name string) bool {
	f, _ := b.Get(name)
	return f.OK
}
