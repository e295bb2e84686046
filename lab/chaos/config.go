package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// Config configures a run.
type Config struct {
	Cluster  *render.Cluster
	Programs lab.Programs
	// Dir is an empty directory for the files of the lab.
	Dir      string
	Seed     uint64
	Duration time.Duration
	Limits   Limits
	// FromRound skips the rounds before it; the remaining rounds are unchanged.
	FromRound int
	// Slack is the slack for this machine, DefaultSlack if zero.
	Slack time.Duration
	// Log receives the lab's log.
	Log *slog.Logger
	// Progress is called with a line for each event; it may be nil.
	Progress func(at time.Duration, what string)
}

// DefaultAtOnce is the default number of simultaneous faults.
const DefaultAtOnce = 4

// check returns an error if the limits are invalid.
func (l Limits) check() error {
	for _, k := range l.Kinds {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("unknown fault %q: expected one of %v", k, Kinds())
		}
	}
	if l.AtOnce < 1 {
		return errors.New("expected at least one fault at a time")
	}
	return nil
}

// Prepared is a planned run.
type Prepared struct {
	Plan     *lab.Plan
	Schedule []Round
	Names    []string // of nodes, by their place in the schedule
	Bounds   Bounds
	spare    spares
}

// spares are addresses that the cluster does not use: for each node, for a VIP, for the hostile
// host, and addresses that stay unused.
type spares struct {
	nodes                []lab.Machine
	vip, hostile, nobody lab.Machine
}

// Prepare plans a run without building the lab.
func Prepare(cfg *Config) (*Prepared, error) {
	if err := cfg.Limits.check(); err != nil {
		return nil, err
	}
	spec := &cfg.Cluster.Config.Spec
	if spec.VRRP.Start != nil {
		return nil, errors.New("this cluster starts like OpenShift's own keepalived and would migrate later: set platform loadBalancer.type to UserManaged in the install-config")
	}
	ingress := slices.DeleteFunc(slices.Clone(spec.Groups), func(g v1alpha1.Group) bool { return g.Role != v1alpha1.GroupIngress })
	if len(ingress) > 1 {
		return nil, fmt.Errorf("this cluster has %d ingress controllers, and invariants are known for the routers of one: leave spec.ingress out of vipgen.yaml, but for the entry 'default'", len(ingress))
	}
	for _, k := range cfg.Limits.Kinds {
		if !k.applies(spec.Routed()) {
			return nil, fmt.Errorf("the fault %q is not one of this cluster, by how it announces VIPs", k)
		}
	}
	plan, err := lab.PlanFor(cfg.Cluster, lab.PlanOptions{})
	if err != nil {
		return nil, err
	}
	p := &Prepared{Plan: plan}
	shape := clusterShape{Nodes: len(plan.Nodes)}
	for i, m := range plan.Nodes {
		if rack := lab.RackOf(i); spec.Routed() {
			for len(shape.Racks) <= rack {
				shape.Racks = append(shape.Racks, nil)
			}
			shape.Racks[rack] = append(shape.Racks[rack], i)
		}
		p.Names = append(p.Names, m.Name)
		if m.Role == v1alpha1.RoleMaster {
			shape.ControlPlane = append(shape.ControlPlane, i)
		}
		if g := ingressOf(spec); g != nil && len(shape.Routers) < 2 && spec.Hosts(g, m.Role, nil) {
			shape.Routers = append(shape.Routers, i)
		}
	}
	more, err := lab.Spare(cfg.Cluster, plan, append(slices.Clone(p.Names), "vip", "hostile", "absent")...)
	if err != nil {
		return nil, err
	}
	nodes := len(p.Names)
	p.spare = spares{more[:nodes], more[nodes], more[nodes+1], more[nodes+2]}
	longest := max(otherInterval(spec.VRRP.Target), time.Duration(spec.VRRP.Target.AdvertIntervalMS)*time.Millisecond)
	if p.Bounds, err = newBounds(spec, longest, cmp.Or(cfg.Slack, DefaultSlack)); err != nil {
		return nil, err
	}
	p.Schedule = newSchedule(cfg.Seed, cfg.Duration, shape, cfg.Limits)
	if cfg.FromRound >= len(p.Schedule) {
		return nil, fmt.Errorf("this seed has %d rounds in that time, counted from 0: there is no round %d", len(p.Schedule), cfg.FromRound)
	}
	p.Schedule = p.Schedule[cfg.FromRound:]
	return p, nil
}

// ingressOf returns the group of the default ingress controller, nil if there is none.
func ingressOf(spec *v1alpha1.ClusterConfigSpec) *v1alpha1.Group {
	for i := range spec.Groups {
		if spec.Groups[i].Role == v1alpha1.GroupIngress {
			return &spec.Groups[i]
		}
	}
	return nil
}
