package health

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// newMonitor returns a monitor of the API group.
func newMonitor(files Terms, log io.Writer) *Monitor {
	return &Monitor{
		Board: NewBoard(), Files: files, Groups: []v1alpha1.Group{apiGroup}, Role: v1alpha1.RoleMaster,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// runMonitor runs a monitor until the test ends.
func runMonitor(t testing.TB, files Terms, checks ...Check) *Board {
	t.Helper()
	m := newMonitor(files, io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx, checks) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m.Board
}

func openTrack(t testing.TB, dir string) *TrackFiles {
	t.Helper()
	files, err := OpenTrackFiles(dir)
	testkit.Must(t, err)
	_, terms := vrrp.PriorityTerms(&apiGroup, v1alpha1.RoleMaster)
	testkit.Must(t, files.Ensure(terms))
	return files
}

// unhurried is for services whose first answer may be late on a busy machine.
var unhurried = vrrp.ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: testkit.Patience, Times: 2}

func TestMonitorWritesTrackFiles(t *testing.T) {
	dir := t.TempDir()
	haproxy, api := newService(t, false), newService(t, true)
	board := runMonitor(t, openTrack(t, dir),
		newCheck(FactHAProxy, newProbe(t, haproxy.local()).Probe, unhurried),
		newCheck(FactAPI, newProbe(t, api.local()).Probe, unhurried))
	says := func(path, orAPI string) {
		t.Helper()
		testkit.Await(t, "lb-path "+path+" and lb-or-api "+orAPI, func() bool {
			a, _ := os.ReadFile(filepath.Join(dir, "lb-path"))
			b, _ := os.ReadFile(filepath.Join(dir, "lb-or-api"))
			return string(a) == path+"\n" && string(b) == orAPI+"\n"
		})
	}
	says("0", "1") // the redirect is not in place yet
	board.Set(state.Fact{Name: FactRedirect, OK: true})
	says("1", "1")
	haproxy.status.Store(http.StatusServiceUnavailable)
	says("0", "1")
	api.status.Store(http.StatusInternalServerError)
	says("0", "0")
	haproxy.status.Store(http.StatusOK)
	says("1", "1")
	board.Set(state.Fact{Name: FactRedirect})
	says("0", "0") // HAProxy is out of reach, and there is no API server here
	want := []state.Fact{{Name: FactAPI, Why: "status 500 Internal Server Error"}, {Name: FactHAProxy, OK: true}, {Name: FactRedirect}}
	testkit.Equal(t, want, board.Facts())
}

// fragile files cannot be written at first.
type fragile struct {
	failures int
	written  []string
	repeated int
}

func (f *fragile) Repeat() error { f.repeated++; return nil }

func (f *fragile) Set(name string, on bool) (bool, error) {
	if f.failures > 0 {
		f.failures--
		return false, errors.New("no space left")
	}
	if on && !slices.Contains(f.written, name) {
		f.written = append(f.written, name)
		return true, nil
	}
	return false, nil
}

func TestMonitorRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(ticker.UntilNext(time.Second))
		files := &fragile{failures: 7}
		m := newMonitor(files, io.Discard)
		m.Board.Set(state.Fact{Name: factMachineConfig, OK: true})
		ctx, cancel := context.WithTimeout(context.Background(), 9500*time.Millisecond)
		defer cancel()
		m.Run(ctx, nil)
		if files.failures != 0 || !slices.Equal(files.written, []string{"machine-config"}) {
			t.Errorf("%d failures left, written %v", files.failures, files.written)
		}
		testkit.Equal(t, 9, files.repeated)
	})
}

// sealed files are up to date, and cannot be written.
type sealed struct{ fragile }

func (s *sealed) Repeat() error { return errors.New("read-only file system") }

// A round without a file to write does not prove that files are writable again.
func TestMonitorProbesOnlyByWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := newMonitor(&sealed{}, &out)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		time.AfterFunc(2500*time.Millisecond, func() { m.Board.Set(state.Fact{Name: "api", Why: "refused"}) })
		m.Run(ctx, nil)
		if n := strings.Count(out.String(), "cannot write track files"); n != 1 || strings.Contains(out.String(), "track files written again") {
			t.Errorf("%d complaints:\n%s", n, out.String())
		}
	})
}

// keepalived may have missed a write: it is repeated soon afterwards, and seldom from then on.
func TestMonitorRepeats(t *testing.T) {
	for _, tt := range []struct{ seconds, want int }{{9, 9}, {12, 10}, {25, 11}, {60, 14}} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(ticker.UntilNext(time.Second))
			files := &fragile{}
			m := newMonitor(files, io.Discard)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(tt.seconds)*time.Second+500*time.Millisecond)
			defer cancel()
			m.Run(ctx, nil)
			if files.repeated < tt.want-1 || files.repeated > tt.want+1 {
				t.Errorf("repeated %d times in %d s, want about %d", files.repeated, tt.seconds, tt.want)
			}
			m.Board.Set(state.Fact{Name: factMachineConfig, OK: true})
			files.repeated = 0
			time.Sleep(ticker.UntilNext(time.Second))
			ctx, cancel = context.WithTimeout(context.Background(), 3500*time.Millisecond)
			defer cancel()
			m.Run(ctx, nil)
			testkit.Equal(t, 3, files.repeated)
		})
	}
}

var (
	apiGroup     = v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}
	moreAPI      = v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI}
	dnsGroup     = v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS}
	ingressGroup = v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}
)

// priority returns the priority of a node with these facts, less 300 for a veto.
func priority(t *testing.T, g v1alpha1.Group, role string, facts ...state.Fact) int {
	t.Helper()
	b := NewBoard()
	for _, f := range facts {
		b.Set(f)
	}
	sum, terms := vrrp.PriorityTerms(&g, role)
	for _, term := range terms {
		on := term.On(b.Health(&g))
		switch {
		case on && term.Points == 0:
			sum -= 300
		case on:
			sum += term.Points
		}
	}
	return sum
}

func so(names ...string) (out []state.Fact) {
	for _, name := range names {
		out = append(out, state.Fact{Name: name, OK: true})
	}
	return out
}

func TestPriorities(t *testing.T) {
	notHere, notOwn := state.Fact{Name: RouterHere("ingress")}, state.Fact{Name: RouterOwn("ingress")}
	ready, answers, here := RouterReady("ingress"), routerAnswers("ingress"), RouterHere("ingress")
	for name, tt := range map[string]struct {
		group v1alpha1.Group
		role  string
		facts []state.Fact
		want  int
	}{
		"nothing known":                             {apiGroup, v1alpha1.RoleMaster, nil, 40},
		"all is well":                               {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, FactRedirect, factMachineConfig), 68},
		"the bootstrap":                             {apiGroup, v1alpha1.RoleBootstrap, so(FactAPI), 70},
		"an API server without HAProxy":             {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactRedirect), 45},
		"HardCase06: the redirect is missing":       {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, factMachineConfig), 48},
		"HardCase07: the local API server restarts": {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy, FactRedirect, factMachineConfig), 68},
		"none ready, for a while":                   {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy, FactRedirect, factReady, factMachineConfig), 68},
		"none ready, for long":                      {apiGroup, v1alpha1.RoleMaster, append(so(FactHAProxy, FactRedirect, factMachineConfig), state.Fact{Name: factReady}), 43},
		"HAProxy crashed a moment ago":              {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactRestarting, factMachineConfig), 68},
		"it crashed, and is back":                   {apiGroup, v1alpha1.RoleMaster, so(FactRedirect, FactRestarting, factMachineConfig), 68},
		"it crashed, and nothing serves":            {apiGroup, v1alpha1.RoleMaster, so(FactRestarting, factMachineConfig), 43},
		"HAProxy without the redirect":              {apiGroup, v1alpha1.RoleMaster, so(FactHAProxy), 40},
		"machine config server alone":               {apiGroup, v1alpha1.RoleMaster, so(factMachineConfig), 43},
		"more API VIPs, all is well":                {moreAPI, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, Redirect(&moreAPI), factMachineConfig), 68},
		"more API VIPs, a redirect of others":       {moreAPI, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, FactRedirect), 45},
		"a redirect of more API VIPs alone":         {apiGroup, v1alpha1.RoleMaster, so(FactAPI, FactHAProxy, Redirect(&moreAPI)), 45},
		"DNS answers":                               {dnsGroup, v1alpha1.RoleMaster, so(FactDNS), 60},
		"DNS does not answer":                       {dnsGroup, v1alpha1.RoleMaster, nil, 40},
		"no router":                                 {ingressGroup, v1alpha1.RoleWorker, nil, -280},
		"router ready":                              {ingressGroup, v1alpha1.RoleWorker, so(ready, answers, here), 80},
		"HardCase21: router shuts down":             {ingressGroup, v1alpha1.RoleWorker, so(answers, here), 70},
		"nobody said whose router, ready":           {ingressGroup, v1alpha1.RoleWorker, so(ready, answers), 30},
		"nobody said whose router, answers":         {ingressGroup, v1alpha1.RoleWorker, so(answers), 20},
		"router is dead, the pod still there":       {ingressGroup, v1alpha1.RoleWorker, so(here), -230},
		"router of nobody knows whom":               {ingressGroup, v1alpha1.RoleWorker, append(so(ready, answers), notHere), 30},
		"HardCase21: router of another controller":  {ingressGroup, v1alpha1.RoleWorker, append(so(ready, answers), notHere, notOwn), -270},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, priority(t, tt.group, tt.role, tt.facts...))
	}
}

func TestChecks(t *testing.T) {
	spec := &v1alpha1.ClusterConfigSpec{Ports: v1alpha1.DefaultPorts, Groups: []v1alpha1.Group{apiGroup, dnsGroup, ingressGroup, moreAPI}}
	router := []string{"ingress-router-answers", "ingress-router-ready"}
	controlPlane := []string{"api", "api-ready", "dns", "haproxy", "machine-config"}
	compact := *spec
	compact.Groups = slices.Clone(spec.Groups)
	compact.Groups[2].NodeSelector = map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleMaster): ""}
	for name, tt := range map[string]struct {
		spec *v1alpha1.ClusterConfigSpec
		role string
		want []string
	}{
		"bootstrap":      {&compact, v1alpha1.RoleBootstrap, []string{"api", "dns", "ironic"}},
		"master":         {&compact, v1alpha1.RoleMaster, append(slices.Clone(controlPlane), router...)},
		"arbiter":        {&compact, v1alpha1.RoleArbiter, controlPlane},
		"worker":         {spec, v1alpha1.RoleWorker, router},
		"worker, others": {&compact, v1alpha1.RoleWorker, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Checks(tt.spec, tt.role, nil) {
				got = append(got, c.Name) // each once, although two groups use it
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			testkit.Equal(t, tt.want, got)
		})
	}
}
