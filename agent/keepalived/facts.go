package keepalived

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/track"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// FirewallState is the name under which the firewall job publishes Firewall.
const FirewallState = "firewall"

// Firewall is what the load balancer path needs to know of the firewall job.
type Firewall struct {
	// InPlace says that every VIP is redirected to HAProxy, in both families and
	// both hooks (hard case 6).
	InPlace bool `json:"inPlace"`
}

// checks keeps the health checks of the node running that its groups need.
type checks struct {
	board   *health.Board
	files   *track.Files
	metrics *health.Metrics
	log     *slog.Logger

	key    string // of what is running
	cancel context.CancelFunc
	done   chan struct{}
}

// follow makes the checks those of a node of that role and with those labels. It
// returns with track files for all of their terms.
func (c *checks) follow(s *v1alpha1.ClusterConfigSpec, role string, labels map[string]string) error {
	m := &health.Monitor{Board: c.board, Files: c.files, Role: role, Metrics: c.metrics, Log: c.log}
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
	c.stop()
	for i := range m.Groups {
		if err := c.ensure(&m.Groups[i], role); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.key, c.cancel, c.done = string(key), cancel, make(chan struct{})
	list := health.Checks(s, role, labels)
	go func() {
		defer close(c.done)
		m.Run(ctx, list)
	}()
	return nil
}

func (c *checks) ensure(g *v1alpha1.Group, role string) error {
	_, terms := terms(g, role)
	return c.files.Ensure(terms)
}

// stop ends the checks; the track files keep what they say.
func (c *checks) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	<-c.done
	c.key, c.cancel = "", nil
}

// routers makes known which groups have a router of their own here (hard case
// 21). While the API is away its last word stands: a router's own word does not
// say whose it is, and would put another controller's level with the group's own.
func routers(b *health.Board, s *v1alpha1.ClusterConfigSpec, n facts.Nodes) {
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Role != v1alpha1.GroupIngress || g.Controller == "" {
			continue
		}
		here, known := n.Router(g.Controller)
		if !known {
			continue
		}
		f := health.Fact{Name: health.RouterHere(g.Name), OK: here}
		if !here {
			f.Why = "no ready router of ingress controller " + g.Controller
		}
		b.Set(f)
	}
}

// followFirewall keeps the fact of the redirect in step with what the firewall
// job says, for as long as that lives, until ctx ends.
func followFirewall(ctx context.Context, dir *state.Dir, b *health.Board) error {
	changed, err := dir.Watch(ctx, FirewallState)
	if err != nil {
		return err
	}
	go func() {
		for range changed {
			b.Set(redirect(dir))
		}
	}()
	return nil
}

func redirect(dir *state.Dir) health.Fact {
	f := health.Fact{Name: health.FactRedirect}
	var fw Firewall
	alive, err := dir.Read(FirewallState, &fw)
	switch {
	case err != nil:
		f.Why = fmt.Sprintf("the firewall job says nothing useful: %v", err)
	case !alive:
		f.Why = "the firewall job does not run"
	case !fw.InPlace:
		f.Why = "the firewall job has not placed it"
	default:
		f.OK = true
	}
	return f
}
