package health

import (
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// health is what the facts mean to a group.
func (b *Board) health(g *v1alpha1.Group) vrrp.Health {
	return vrrp.Health{
		HAProxy:       b.ok(FactHAProxy),
		Unready:       b.denied(factReady),
		Redirect:      b.ok(Redirect(g)),
		Restarting:    b.ok(FactRestarting),
		API:           b.ok(FactAPI),
		MachineConfig: b.ok(factMachineConfig),
		DNS:           b.ok(FactDNS),
		RouterAnswers: b.ok(routerAnswers(g.Name)),
		RouterReady:   b.ok(RouterReady(g.Name)),
		RouterHere:    b.ok(RouterHere(g.Name)),
		RouterForeign: b.denied(RouterOwn(g.Name)),
	}
}

// denied says whether a fact is known not to be so.
func (b *Board) denied(name string) bool {
	f, known := b.Get(name)
	return known && !f.OK
}

func (b *Board) ok(name string) bool {
	f, _ := b.Get(name)
	return f.OK
}
