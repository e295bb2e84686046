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

// Run measures: run after run of a scenario with each profile in turn, so that
// what the machine does meanwhile is the same for all. The report holds what there
// is also when the error says that it was ended early.
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

// playAll has all scenarios happen. The report has what was measured also when ctx ends it.
func (b *bench) playAll(ctx context.Context) error {
	if b.cfg.Progress == nil {
		b.cfg.Progress = func(string) {}
	}
	if b.cfg.Step == nil {
		b.cfg.Step = func(Step) {}
	}
	b.pace = pace{began: b.now()}
	for _, s := range b.cfg.Scenarios {
		if s.without(b.cfg.Cluster) == "" {
			b.pace.total += b.runs(&s) * len(b.cfg.Profiles)
		}
	}
	for number, s := range b.cfg.Scenarios {
		if err := b.play(ctx, number, &s); err != nil {
			return err
		}
	}
	return nil
}

// runs is how often a scenario happens to each profile.
func (b *bench) runs(s *Scenario) int {
	if s.Once {
		return min(b.cfg.Runs, 1)
	}
	return b.cfg.Runs
}

// bench is a measurement under way.
type bench struct {
	cfg      *Config
	subjects map[string]*subject // by profile
	room     int                 // for how many of them
	report   *report.Report
	pace     pace
	// measure has a scenario happen to the cluster of a profile: once.
	measure func(context.Context, *Scenario, Profile, float64) (report.Run, error)
	now     func() time.Time
}

// play has a scenario happen to all profiles. The error is that of ctx.
func (b *bench) play(ctx context.Context, number int, s *Scenario) error {
	out := report.Scenario{Name: s.Name, Title: s.Title, What: s.What, Aim: s.Aim, VIP: s.vip(b.cfg.Cluster)}
	without := s.without(b.cfg.Cluster)
	for _, p := range b.cfg.Profiles {
		out.Results = append(out.Results, report.Result{Profile: p.Name, NotApplicable: without})
	}
	b.report.Scenarios = append(b.report.Scenarios, out)
	if without != "" {
		return nil
	}
	runs := b.runs(s)
	for _, t := range b.turns(runs) {
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
			run.Spans[k].VIP = out.VIP // whatever it has changed to
		}
		list := &out.Results[t.profile].Runs
		*list = append(*list, run)
		b.pace.done++
		b.cfg.Progress(step.String() + ": " + tell(run))
	}
	return nil
}

// turn is a run of a profile, both counted from 0.
type turn struct{ run, profile int }

// turns are all of a scenario. With room for all clusters at once the profiles
// take turns, else the runs of each come one after the other.
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

// once has a scenario happen to the cluster of a profile, which is built anew
// where it cannot be used again.
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

// makeRoom ends clusters of other profiles until there is room for one more.
func (b *bench) makeRoom(p string) (err error) {
	for _, name := range b.report.Profiles {
		if s := b.subjects[name]; s != nil && name != p && len(b.subjects) >= b.room {
			delete(b.subjects, name)
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// watchesPerNode is more than the inotify instances that the agents and daemons of
// a node make.
const watchesPerNode = 20

// room is how many clusters this machine has inotify instances for; one at least.
func room(nodes int) (int, error) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return max(1, n/(watchesPerNode*nodes)), err
}

// tell says what a run was like.
func tell(run report.Run) string {
	if run.Error != "" {
		return "failed: " + run.Error
	}
	what := fmt.Sprintf("%v %s, %d of %d requests lost", round(run.Outage), vrrp.WithoutAnswer, run.Lost, run.Asked)
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

// phase gives a moment between two adverts, from 0 to 1. Those of consecutive runs
// are spread evenly, whatever their number: the fractional parts of multiples of
// the golden ratio.
func phase(seed uint64, scenario, run int) float64 {
	n := float64(seed%1000) + float64(7*scenario+run)
	_, fraction := math.Modf(n * (math.Sqrt(5) - 1) / 2)
	return fraction
}

// apiFact says what API servers are.
func apiFact(real bool) report.Fact {
	value := "stand-ins in vipgen"
	if real {
		value = "kube-apiserver and etcd"
	}
	return report.Fact{Name: "API servers", Value: value}
}

// machine says what it is measured on.
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
