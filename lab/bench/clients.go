package bench

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/client"
	"github.com/vipgen/vipgen/lab/report"
)

// clientsLimit is the additional time of a run with clients: client-go needs up to 45 seconds to
// detect a dead connection, and its reflectors wait before a retry.
const clientsLimit = 90 * time.Second

// startClients starts the configured clients on machines that the scenario does not break.
func (r *run) startClients(ctx context.Context) (err error) {
	if r.clients == 0 || r.scenario.VIP != api || r.scenario.Bootstrap {
		return nil
	}
	fails := []*lab.Node{r.holder}
	if r.scenario.fails != nil {
		fails = r.scenario.fails(r)
	}
	control, workers := client.Place{Name: "control plane"}, client.Place{Name: "workers"}
	for _, n := range r.Nodes() {
		switch {
		case !n.On() || slices.Contains(fails, n):
		case n.Role == v1alpha1.RoleMaster:
			control.Machines = append(control.Machines, n)
		default:
			workers.Machines = append(workers.Machines, n)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, clientsLimit)
	defer cancel()
	r.others, err = client.Start(ctx, client.Config{
		API: r.API, Domain: r.Spec().Domain, VIP: netip.AddrPortFrom(r.vip, uint16(r.Spec().Ports.API)), Each: r.clients,
		Places: []client.Place{control, workers, {Name: "outside", Machines: []client.Machine{r.Client}}},
	})
	return err
}

// endClients stops the clients; only the first call has an effect.
func (r *run) endClients() {
	if r.others != nil {
		r.seen = r.others.End()
		r.others = nil
	}
}

// clientsReport returns the results of the clients.
func (r *run) clientsReport() []report.Client {
	return lists.Map(r.seen, func(c client.Result) report.Client {
		return report.Client{Kind: c.Kind, Place: c.Place, Count: c.Clients, Longest: c.Longest, Lost: c.Lost, Stuck: c.Stuck}
	})
}
