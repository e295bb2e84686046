package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/report"
)

// Run runs the benchmark: each scenario several times, with the profiles in turn, so that other
// load of the machine affects all equally. If ctx ends early, it returns the report so far with the
// error.
func Run(ctx context.Context, cfg Config) (*report.Report, error) {
	b := &bench{cfg: &cfg, subjects: map[string]*subject{}, report: &report.Report{Machine: append(machine(), apiFact(cfg.RealAPI))}, now: time.Now}
	b.measure = b.once
	for _, p := range cfg.Profiles {
		b.report.Profiles = append(b.report.Profiles, p.Name)
		if p.Reference {
			b.report.Reference = p.Name
		}
	}
	plan, err := lab.NewPlan(cfg.Cluster, lab.PlanOptions{})
	if err != nil {
		return b.report, err
	}
	if b.room, err = room(len(plan.Nodes)); err != nil {
		return b.report, err
	}
	err = b.playAll(ctx)
	for _, s := range b.subjects {
		err = errors.Join(err, s.Close())
	}
	return b.report, err
}

// playAll runs all scenarios. If ctx ends, the report has the results so far.
func (b *bench) playAll(ctx context.Context) error {
	if b.cfg.Progress == nil {
		b.cfg.Progress = func(string) {}
	}
	if b.cfg.Step == nil {
		b.cfg.Step = func(Step) {}
	}
	b.pace = pace{began: b.now()}
	for _, s := range b.cfg.Scenarios {
		for _, p := range b.cfg.Profiles {
			if s.missing(b.cfg, p) == "" {
				b.pace.total += b.runs(&s)
			}
		}
	}
	for number, s := range b.cfg.Scenarios {
		if err := b.play(ctx, number, &s); err != nil {
			return err
		}
	}
	return nil
}

// runs returns the number of runs of a scenario with each profile.
func (b *bench) runs(s *Scenario) int {
	if s.Once {
		return min(b.cfg.Runs, 1)
	}
	return b.cfg.Runs
}

// bench is a benchmark in progress.
type bench struct {
	cfg      *Config
	subjects map[string]*subject // by profile
	room     int                 // maximum number of subjects at once
	report   *report.Report
	pace     pace
	// measure runs a scenario once on the cluster of a profile.
	measure func(context.Context, *Scenario, Profile, float64) (report.Run, error)
	now     func() time.Time
}

// play runs a scenario with all profiles. It only returns ctx's error.
func (b *bench) play(ctx context.Context, number int, s *Scenario) error {
	out := report.Scenario{Name: s.Name, Title: s.Title, What: s.What, Aim: s.Aim, VIP: s.vip(b.cfg.cluster(b.cfg.Profiles[0]))}
	for _, p := range b.cfg.Profiles {
		out.Results = append(out.Results, report.Result{Profile: p.Name, NotApplicable: s.missing(b.cfg, p)})
	}
	b.report.Scenarios = append(b.report.Scenarios, out)
	runs := b.runs(s)
	for _, t := range b.turns(runs) {
		if out.Results[t.profile].NotApplicable != "" {
			continue
		}
		step := Step{Scenario: number + 1, Scenarios: len(b.cfg.Scenarios), Name: s.Name, Profile: b.cfg.Profiles[t.profile].Name, Run: t.run + 1, Runs: runs}
		step.Left = b.pace.left(b.now())
		b.cfg.Step(step)
		run, err := b.measure(ctx, s, b.cfg.Profiles[t.profile], phase(b.cfg.Seed, number, t.run))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			run.Error = err.Error()
		}
		for k := range run.Spans {
			run.Spans[k].VIP = out.VIP // also after a change of the VIP
		}
		list := &out.Results[t.profile].Runs
		*list = append(*list, run)
		b.pace.done++
		b.cfg.Progress(step.String() + ": " + summary(run))
	}
	return nil
}

// turn is a run of a profile, both counted from 0.
type turn struct{ run, profile int }

// turns returns all runs of a scenario in order. If there is room for all clusters at once the
// profiles alternate, else the runs of each profile follow one another.
func (b *bench) turns(runs int) (out []turn) {
	for run := range runs {
		for profile := range b.cfg.Profiles {
			out = append(out, turn{run, profile})
		}
	}
	if b.room < len(b.cfg.Profiles) {
		slices.SortStableFunc(out, func(a, b turn) int { return cmp.Compare(a.profile, b.profile) })
	}
	return out
}

// once runs a scenario on the cluster of a profile, which is rebuilt if it cannot be used again.
func (b *bench) once(ctx context.Context, s *Scenario, p Profile, phase float64) (report.Run, error) {
	if s.Bootstrap {
		if err := b.makeRoom(""); err != nil {
			return report.Run{}, err
		}
		fresh, err := build(ctx, b.cfg, p, true)
		if err != nil {
			return report.Run{}, err
		}
		run, err := once(ctx, fresh, s, phase)
		return run, errors.Join(err, fresh.Close())
	}
	c := b.subjects[p.Name]
	if c == nil {
		if err := b.makeRoom(p.Name); err != nil {
			return report.Run{}, err
		}
		fresh, err := build(ctx, b.cfg, p, false)
		if err != nil {
			return report.Run{}, err
		}
		c, b.subjects[p.Name] = fresh, fresh
	}
	run, err := once(ctx, c, s, phase)
	if err != nil {
		delete(b.subjects, p.Name)
		err = errors.Join(err, c.Close())
	}
	return run, err
}

// makeRoom closes clusters of other profiles until there is room for one more.
func (b *bench) makeRoom(p string) (err error) {
	for _, name := range b.report.Profiles {
		if s := b.subjects[name]; s != nil && name != p && len(b.subjects) >= b.room {
			delete(b.subjects, name)
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// watchesPerNode is more than the number of inotify instances of the agents and daemons on a node.
const watchesPerNode = 20

// room returns the number of clusters that this machine has inotify instances for; at least one.
func room(nodes int) (int, error) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return max(1, n/(watchesPerNode*nodes)), err
}

// summary describes the result of a run.
func summary(run report.Run) string {
	if run.Error != "" {
		return "failed: " + run.Error
	}
	what := fmt.Sprintf("%v %s, %d of %d requests lost", round(run.Outage), vrrp.WithoutAnswer, run.Lost, run.Asked)
	if o := run.Others; o != nil {
		what += fmt.Sprintf("; to other nodes %d of %d in %v", o.Lost, o.Asked, round(o.Outage))
	}
	if run.SplitBrain > 0 {
		what += fmt.Sprintf(", split brain for %v", round(run.SplitBrain))
	}
	for _, e := range run.Events {
		if e.At != run.Fault && e.Text != ended {
			what += "; " + e.Text
		}
	}
	return what
}

// phase returns a phase of the advertisement interval, from 0 to 1. The phases of consecutive runs
// are evenly spread for any number of runs: they are the fractional parts of multiples of the
// golden ratio.
func phase(seed uint64, scenario, run int) float64 {
	n := float64(seed%1000) + float64(7*scenario+run)
	_, fraction := math.Modf(n * (math.Sqrt(5) - 1) / 2)
	return fraction
}

// apiFact describes the API servers.
func apiFact(real bool) report.Fact {
	value := "stand-ins in vipgen"
	if real {
		value = "kube-apiserver and etcd"
	}
	return report.Fact{Name: "API servers", Value: value}
}

// machine describes this machine.
func machine() []report.Fact {
	facts := []report.Fact{{Name: "cores", Value: fmt.Sprint(runtime.NumCPU())}}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		facts = append(facts, report.Fact{Name: "kernel", Value: unix.ByteSliceToString(u.Release[:])})
	}
	for _, program := range []string{"keepalived", "haproxy"} {
		out, err := exec.Command(program, "-v").CombinedOutput()
		first, _, _ := strings.Cut(string(out), "\n")
		if err == nil {
			facts = append(facts, report.Fact{Name: program, Value: first})
		}
	}
	return facts
}
