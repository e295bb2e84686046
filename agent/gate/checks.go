// Package gate decides by the health of a node's services whether its VIPs may be here: the
// same facts for VRRP, which turns them into a priority, and for BGP, which turns them into
// a preference.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Terms receives the values of priority terms, such as health.TrackFiles.
type Terms interface {
	// Ensure prepares terms before their first value.
	Ensure([]vrrp.Term) error
	health.Terms
}

// Checks runs the health checks that the groups of the node need.
type Checks struct {
	// Board holds the facts of the node.
	Board *health.Board

	terms   Terms
	metrics *health.Metrics
	log     *slog.Logger
	// redirects sets the redirect facts of API groups.
	redirects *redirects
	// answers serves the HAProxy check.
	answers *answers

	groups  []v1alpha1.Group
	key     string // identifies the running checks
	failing logging.Transitions
	cancel  context.CancelFunc
	done    chan struct{}
}

// New returns checks that write terms. metrics may be nil.
func New(terms Terms, dir *state.Dir, metrics *health.Metrics, log *slog.Logger) *Checks {
	board := health.NewBoard()
	return &Checks{
		Board: board, terms: terms, metrics: metrics, log: log,
		redirects: &redirects{dir: dir, board: board}, answers: newAnswers(dir),
	}
}

// Watch follows the published states of other jobs until ctx ends.
func (c *Checks) Watch(ctx context.Context) error {
	return errors.Join(c.redirects.run(ctx), c.answers.run(ctx))
}

// Follow runs the checks for a node with this role and these labels, and logs failures.
// All of their terms have a value when it returns.
func (c *Checks) Follow(s *v1alpha1.ClusterConfigSpec, role string, labels map[string]string) error {
	err := c.run(s, role, labels)
	c.failing.Error(c.log, err, "cannot start health checks", "health checks started again")
	return err
}

func (c *Checks) run(s *v1alpha1.ClusterConfigSpec, role string, labels map[string]string) error {
	m := &health.Monitor{Board: c.Board, Files: c.terms, Role: role, Metrics: c.metrics, Log: c.log}
	for i := range s.Groups {
		if g := s.Groups[i]; s.Hosts(&g, role, labels) {
			m.Groups = append(m.Groups, g)
		}
	}
	key, err := json.Marshal([]any{m.Groups, s.Ports})
	if err != nil {
		return err
	}
	if string(key) == c.key {
		return nil
	}
	for i := range m.Groups {
		if err := c.ensure(&m.Groups[i], role); err != nil {
			return err // the running checks continue: their terms must stay current
		}
	}
	c.Stop()
	c.redirects.follow(m.Groups) // first: a poll in progress may set facts that are forgotten below
	for _, g := range c.groups {
		if !slices.ContainsFunc(m.Groups, func(now v1alpha1.Group) bool { return now.Name == g.Name }) {
			c.Board.Forget(health.FactsOf(&g)...)
		}
	}
	c.groups = m.Groups
	ctx, cancel := context.WithCancel(context.Background())
	c.key, c.cancel, c.done = string(key), cancel, make(chan struct{})
	list := health.Checks(s, role, labels)
	c.answers.use(list)
	go func() {
		defer close(c.done)
		m.Run(ctx, list)
	}()
	return nil
}

func (c *Checks) ensure(g *v1alpha1.Group, role string) error {
	_, terms := vrrp.PriorityTerms(g, role)
	return c.terms.Ensure(terms)
}

// Stop ends the checks; the terms keep their values.
func (c *Checks) Stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	<-c.done
	c.key, c.cancel = "", nil
}

// SetRouters sets, for each ingress group that the node can hold, whether a router of the
// group's own controller runs here (hard case 21). While the API is away the last answer
// stands: the router itself does not know its controller, and would rank another
// controller's node with the group's own.
//
// Where only routers of other controllers run, the node must not hold the VIP at all:
// clients would reach a router without their routes.
func SetRouters(b *health.Board, s *v1alpha1.ClusterConfigSpec, node *v1alpha1.Node, n facts.Nodes) {
	r, known := n.Routers()
	if !known {
		return
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Role != v1alpha1.GroupIngress || g.Controller == "" || !s.Hosts(g, node.Role, node.Labels) {
			continue
		}
		here := state.Fact{Name: health.RouterHere(g.Name), OK: r.Has(g.Controller)}
		if !here.OK {
			here.Why = "no ready router of ingress controller " + g.Controller
		}
		b.Set(here)
		own := state.Fact{Name: health.RouterOwn(g.Name), OK: !r.Foreign(g.Controller)}
		if !own.OK {
			own.Why = "the router here is of ingress controller " + strings.Join(r.Present, ", ")
		}
		b.Set(own)
	}
}
