package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
)

// kill kills the given processes of a job, and waits until the job runs again, with other processes
// of the daemon.
func (a *act) kill(ctx context.Context, n *lab.Node, j job, victims, were map[int]int, c *condition) (undo, error) {
	var m *mark
	if c != nil {
		m = a.begin(n, *c)
	}
	if err := signal(victims, syscall.SIGKILL); err != nil {
		if m != nil {
			m.end(0)
		}
		return nil, err
	}
	return func(ctx context.Context) error {
		err := a.awaitRestart(ctx, n, j, were)
		if m != nil {
			return errors.Join(err, a.recover(ctx, m, c.Group, a.afterStart()))
		}
		return err
	}, nil
}

// conditionWithout returns the condition of a node on which a job does not run; nil if no rule
// depends on the job.
func (a *act) conditionWithout(name string) *condition {
	switch name {
	case "keepalived", "bgp":
		return &condition{Effect: effectMute}
	case "haproxy":
		return &condition{Effect: effectUnfit, Group: v1alpha1.GroupAPI, Notice: a.bounds.Refused}
	case "firewall": // its rules stay, but its published state is stale
		return &condition{Effect: effectUnsure, Group: v1alpha1.GroupAPI}
	}
	return nil
}

// crashed returns the condition of a node whose HAProxy crashed: it has time to serve again.
func (a *act) crashed() *condition {
	c := a.conditionWithout("haproxy")
	c.Notice = max(c.Notice, vrrp.RestartTime)
	return c
}

func (a *act) killKeepalived(ctx context.Context) (undo, error) {
	j := jobs["keepalived"]
	victims := pids(a.node(), j, j.daemon)
	return a.kill(ctx, a.node(), j, victims, victims, a.conditionWithout("keepalived"))
}

// haproxies returns HAProxy's master and workers on a node.
func haproxies(n *lab.Node) (master, workers map[int]int) {
	all := pids(n, jobs["haproxy"], "haproxy")
	master, workers = map[int]int{}, map[int]int{}
	for pid, parent := range all {
		if _, ok := all[parent]; ok {
			workers[pid] = parent
		} else {
			master[pid] = parent
		}
	}
	return master, workers
}

func (a *act) killWorker(ctx context.Context) (undo, error) {
	_, workers := haproxies(a.node())
	return a.kill(ctx, a.node(), jobs["haproxy"], workers, workers, a.crashed())
}

func (a *act) killMaster(ctx context.Context) (undo, error) {
	master, workers := haproxies(a.node())
	were := maps.Clone(workers)
	maps.Copy(were, master)
	return a.kill(ctx, a.node(), jobs["haproxy"], master, were, a.crashed())
}

func (a *act) killAgent(ctx context.Context) (undo, error) {
	j := jobs[a.fault.What]
	victims := pids(a.node(), j, j.program())
	return a.kill(ctx, a.node(), j, victims, victims, a.conditionWithout(a.fault.What))
}

// killContainer kills the daemon and the agent together.
func (a *act) killContainer(ctx context.Context) (undo, error) {
	j := jobs[a.fault.What]
	victims := pids(a.node(), j, j.program())
	if j.daemon != "" {
		maps.Copy(victims, pids(a.node(), j, j.daemon))
	}
	return a.kill(ctx, a.node(), j, victims, victims, a.conditionWithout(a.fault.What))
}

// stopContainer terminates an agent, as kubelet does. The agent stops its daemon gracefully, so
// that clients always see exactly one holder.
func (a *act) stopContainer(ctx context.Context) (undo, error) {
	n, j := a.node(), jobs[a.fault.What]
	victims := pids(n, j, j.program())
	c := condition{Effect: effectUnsure}
	if a.fault.What == "bgp" {
		c.Effect = effectLeaving
	}
	m := a.begin(n, c)
	if err := signal(victims, syscall.SIGTERM); err != nil {
		m.end(0)
		return nil, err
	}
	return func(ctx context.Context) error {
		err := a.awaitEnd(ctx, victims)
		if c.Effect == effectLeaving {
			err = errors.Join(err, a.awaitRestart(ctx, n, j, victims))
			m.end(a.settle(a.afterStart()))
			return err
		}
		return errors.Join(err, a.recover(ctx, m, "", a.afterStart(), func() error { return a.awaitRestart(ctx, n, j, victims) }))
	}, nil
}

// awaitEnd waits until terminated processes have ended. The time limit is kubelet's, which kills
// them.
func (a *act) awaitEnd(ctx context.Context, list map[int]int) error {
	return lab.Await(ctx, "what was asked to end", func() (bool, error) {
		for pid := range list {
			if p, ok := readProcess(pid); ok && !p.zombie {
				return false, nil
			}
		}
		return true, nil
	})
}

// freeze stops processes with SIGSTOP; settle is the time that the node needs after they continue.
func (a *act) freeze(n *lab.Node, victims map[int]int, c condition, settle time.Duration) (undo, error) {
	var m *mark
	err := errNoEffect
	if len(victims) > 0 {
		m, err = a.between(n, c, func() error { return signal(victims, syscall.SIGSTOP) })
	}
	return func(ctx context.Context) error {
		if m == nil {
			return nil
		}
		return a.recover(ctx, m, c.Group, settle, func() error { return signal(victims, syscall.SIGCONT) })
	}, err
}

func (a *act) freezeKeepalived(context.Context) (undo, error) {
	return a.freeze(a.node(), pids(a.node(), jobs["keepalived"], "keepalived"), condition{Effect: effectMute}, a.bounds.election())
}

func (a *act) freezeHAProxy(ctx context.Context) (undo, error) {
	return a.each(ctx, func(n *lab.Node) (undo, error) {
		return a.freeze(n, pids(n, jobs["haproxy"], "haproxy"),
			condition{Effect: effectUnfit, Group: v1alpha1.GroupAPI, Notice: a.bounds.Hung}, a.bounds.BackendUp+a.bounds.Hung)
	})
}

// allJobs is the variant of freezeAgent that stops all agents of a node.
const allJobs = "all"

// freezeAgent stops the agent: the node keeps its VIPs without health checks, and no state is
// published.
func (a *act) freezeAgent(context.Context) (undo, error) {
	victims := map[int]int{}
	for name, j := range jobs {
		if name == a.fault.What || a.fault.What == allJobs {
			maps.Copy(victims, pids(a.node(), j, j.program()))
		}
	}
	c := condition{Effect: effectUnsure}
	if a.routed != nil && (a.fault.What == "bgp" || a.fault.What == allJobs) {
		c.Effect = effectMute
	}
	return a.freeze(a.node(), victims, c, a.bounds.Apply+a.bounds.Hung+a.bounds.Session)
}

func (a *act) removeManifest(ctx context.Context) (undo, error) {
	n := a.node()
	doing := a.begin(n, condition{Effect: effectUnsure})
	restore, err := n.RemovePod(ctx, a.fault.What)
	if restore == nil {
		doing.end(0)
		return nil, fmt.Errorf("%w: %w", errNoEffect, err)
	}
	if c := a.conditionWithout(a.fault.What); c != nil && err == nil {
		m := a.begin(n, *c)
		doing.end(0)
		doing = m
	}
	return func(ctx context.Context) error {
		return a.recover(ctx, doing, "", a.afterStart(), restore, func() error { return a.awaitPod(ctx, n, a.fault.What) })
	}, err
}

// awaitPod waits until all jobs of a pod run.
func (a *act) awaitPod(ctx context.Context, n *lab.Node, podName string) (err error) {
	for _, j := range jobs {
		if j.pod == podName && err == nil {
			err = a.awaitRestart(ctx, n, j, nil)
		}
	}
	return err
}
