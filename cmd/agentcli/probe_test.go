package agentcli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/liveness/early"
	"github.com/vipgen/vipgen/internal/testkit"
)

// stuckJob is a job whose Stuck is the only method called.
type stuckJob struct {
	job.Job
	err error
}

func (j stuckJob) Stuck() error { return j.err }

// A probe that is answered before packages are initialised matches one that succeeds silently
// on the command line.
func TestEarlyProbe(t *testing.T) {
	broken := errors.New("broken")
	hang := func(ctx context.Context, _ job.Environment) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, c := range []struct {
		name  string
		stuck error
		probe func(context.Context, job.Environment) error
		early bool
		says  string // on the command line
	}{
		{name: "no daemon", early: true},
		{name: "works", probe: func(context.Context, job.Environment) error { return nil }, early: true},
		{name: "stuck", stuck: broken, says: "error=broken"},
		{name: "daemon broken", probe: func(context.Context, job.Environment) error { return broken }, says: "error=broken"},
		{name: "daemon hangs", probe: hang, says: `error="waited for 4s"`},
		{name: "warning", probe: func(_ context.Context, e job.Environment) error {
			e.Log.Warn("lost the name")
			return nil
		}, says: "lost the name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			dir, err := state.Open(filepath.Join(root, v1alpha1.RunDir))
			testkit.Must(t, err)
			defer dir.Close()
			kind := job.Kind{Name: "test", Probe: c.probe}
			running := task{Kind: kind, job: stuckJob{err: c.stuck}, env: job.Environment{Root: root, State: dir}}
			log := slog.New(slog.NewTextHandler(t.Output(), nil))
			of := filepath.Join(root, v1alpha1.JobDir(kind.Name))
			go liveness.Answer(t.Context(), of, running.job.Stuck, log)
			go liveness.Serve(t.Context(), of, early.Socket, func() string { return running.alive(t.Context()) }, log)
			testkit.Await(t, "the job to answer", func() bool {
				err := liveness.Ask(t.Context(), of, kind.Name)
				return err == nil || c.stuck != nil && err.Error() == c.stuck.Error()
			})
			if c.early {
				testkit.Await(t, "the early answer", func() bool { return early.Ask(filepath.Join(root, v1alpha1.RunDir), kind.Name) })
			} else if early.Ask(filepath.Join(root, v1alpha1.RunDir), kind.Name) {
				t.Error("answered early")
			}

			var errOut bytes.Buffer
			a := &app{err: &errOut, root: root, log: slog.New(slog.NewTextHandler(&errOut, nil))}
			line := a.probe(kind)
			line.SilenceErrors, line.SilenceUsage = true, true
			code := a.exit(command.Execute(t.Context(), line, nil))
			if silent := code == command.OK && errOut.Len() == 0; silent != c.early || !strings.Contains(errOut.String(), c.says) {
				t.Errorf("exit code %d: %s", code, errOut.String())
			}
		})
	}
}
