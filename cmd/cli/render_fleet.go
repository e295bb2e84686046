package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

type fleetRun struct {
	*app
	input.Fleet
	flags   *renderFlags
	options render.Options
	// The results so far.
	problems problem.List
	failed   int // clusters with problems
	broken   []error
	drifted  int
	changed  int
	result   tree.Result
}

// heapLimit is about three times the memory that rendering keeps.
const heapLimit = 64 << 20

type outcome struct {
	problems problem.List
	text     []byte // to print
	result   tree.Result
	err      error
}

// renderFleet renders all clusters independently, and reports the problems of all of them at
// the end.
func (a *app) renderFleet(c *cobra.Command, fleet input.Fleet, f *renderFlags) error {
	if f.merge != "" || f.installDir != "" {
		return command.Usagef(c, "--merge and --install-dir are for one cluster, not for %d", len(fleet.Clusters))
	}
	if f.Config != "" || f.AgentConfig != "" || f.ClusterIngress != "" {
		return command.Usagef(c, "--config, --agent-config and --cluster-ingress are for one cluster: a fleet has such files next to each install-config, and --fleet")
	}
	if f.beside != "" {
		if err := distinctFolders(fleet.Clusters); err != nil {
			return command.Usage(c, err)
		}
	}
	o, err := f.Options(&a.Reader)
	if err != nil {
		return err
	}
	// Rendering makes much garbage and keeps little: collect less often, without growing with
	// the number of clusters.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(heapLimit))
	run := &fleetRun{app: a, Fleet: fleet, flags: f, options: o}
	if err := run.renderAll(); err != nil {
		return err
	}
	return run.finish()
}

// distinctFolders refuses clusters in one folder, whose trees would be one.
func distinctFolders(members []input.Cluster) error {
	seen := map[string]string{}
	for _, m := range members {
		file, _ := input.SplitObject(m.Config)
		dir := filepath.Dir(file)
		if first, ok := seen[dir]; ok {
			return fmt.Errorf("--beside: %s and %s are in one folder: give --dir DIR, or every cluster its own folder", first, m.Config)
		}
		seen[dir] = m.Config
	}
	return nil
}

// renderAll renders every cluster; the error is one of the output as a whole.
func (r *fleetRun) renderAll() error {
	progress, total := r.progress(), len(r.Clusters)
	if r.flags.allOrNothing {
		err := ordered(total, func(i int) outcome { return r.renderOne(r.Clusters[i], true) }, func(i int, o outcome) error {
			progress("checking clusters", i, total)
			r.add(o)
			return nil
		})
		if err != nil || r.failed > 0 || len(r.broken) > 0 {
			return err
		}
		r.problems = nil
	}
	if err := ordered(total, func(i int) outcome { return r.renderOne(r.Clusters[i], false) }, func(i int, o outcome) error {
		progress("rendering clusters", i, total)
		r.add(o)
		_, err := r.Out.Write(o.text)
		return err
	}); err != nil {
		return err
	}
	return r.prune()
}

// renderOne renders a cluster; dry writes nothing.
func (r *fleetRun) renderOne(m input.Cluster, dry bool) (out outcome) {
	sources, err := r.Sources(m.Config, r.flags.Files)
	if err != nil {
		out.err = err
		return out
	}
	dir := r.place(m)
	cluster, list, err := render.Load(sources, r.options)
	out.problems = list
	if err != nil {
		out.err = err
		return out
	}
	if err := checkRoles(cluster, r.flags.roles); err != nil {
		out.err = fmt.Errorf("%s: %w", m.Config, err)
		return out
	}
	out.problems = append(out.problems, cluster.Unreferenced(r.flags.want())...)
	if dir == "" {
		var text []byte
		var b bytes.Buffer
		if text, out.err = cluster.Stream(r.flags.want()); out.err == nil && !dry {
			out.err = printObjects(&b, text, r.flags.output)
		}
		out.text = b.Bytes()
		return out
	}
	files, err := cluster.Tree(r.flags.treeWant())
	if err != nil || dry {
		out.err = err
		return out
	}
	var b bytes.Buffer
	out.result, out.err = r.writeTree(&b, r.flags.tree(dir), files, r.flags.check)
	out.text = b.Bytes()
	return out
}

// place returns the directory of a cluster's tree, "" for standard output.
func (r *fleetRun) place(m input.Cluster) string {
	switch {
	case r.flags.beside != "":
		return filepath.Join(filepath.Dir(m.Config), r.flags.beside)
	case r.flags.dir != "":
		return filepath.Join(r.flags.dir, filepath.FromSlash(m.Name))
	}
	return ""
}

func (r *fleetRun) add(o outcome) {
	r.problems = append(r.problems, o.problems...)
	var list problem.List
	switch {
	case o.err == nil:
		r.result.Written += o.result.Written
		r.result.Unchanged += o.result.Unchanged
		r.result.Removed += o.result.Removed
		if o.result.Written+o.result.Removed > 0 {
			r.changed++
		}
	case errors.Is(o.err, command.ErrFinding):
		r.drifted++
	case errors.As(o.err, &list):
		r.failed++
		if o.problems == nil {
			r.problems = append(r.problems, list...)
		}
	default:
		r.broken = append(r.broken, o.err)
	}
}

// prune removes, or reports, the trees of clusters that are gone from a completely known fleet.
func (r *fleetRun) prune() error {
	if r.Whole == "" || r.flags.dir == "" || len(r.flags.roles) > 0 {
		return nil
	}
	known := map[string]bool{}
	for _, m := range r.Clusters {
		known[r.place(m)] = true
	}
	var gone []string
	err := filepath.WalkDir(r.flags.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == tree.Record && !known[filepath.Dir(p)] {
			gone = append(gone, filepath.Dir(p))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range gone {
		var b bytes.Buffer
		result, err := r.writeTree(&b, tree.Dir{Path: dir, Gone: true}, nil, r.flags.check)
		if err == nil && !r.flags.check {
			_ = os.Remove(dir) // unless it has other files
		}
		r.add(outcome{text: b.Bytes(), result: result, err: err})
		if _, err := r.Out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// finish reports problems and returns the worst exit code.
func (r *fleetRun) finish() error {
	r.problems.Sort()
	r.Problems(r.problems)
	for _, err := range r.broken {
		r.Complain(err)
	}
	total := len(r.Clusters)
	if bad := r.failed + len(r.broken); bad > 0 {
		r.Complain(fmt.Errorf("%d of %d clusters failed; %s", bad, total, r.outcomeText()))
	} else {
		r.printStatus("%d clusters: %s", total, r.done())
	}
	switch {
	case len(r.broken) > 0:
		return command.Code(command.Failed)
	case r.failed > 0:
		return command.Code(command.ExitOf(r.problems))
	case r.drifted > 0:
		return command.ErrFinding
	}
	return nil
}

// outcomeText describes the clusters without failures.
func (r *fleetRun) outcomeText() string {
	switch {
	case r.flags.allOrNothing:
		return "nothing was written"
	case r.flags.check:
		return fmt.Sprintf("of the others %d differ", r.drifted)
	case r.flags.dir == "" && r.flags.beside == "":
		return "the others were printed"
	}
	return "the others were written"
}

func (r *fleetRun) done() string {
	switch {
	case r.flags.check && r.drifted == 0:
		return "all are as rendered"
	case r.flags.check:
		return fmt.Sprintf("%d differ", r.drifted)
	case r.flags.dir == "" && r.flags.beside == "":
		return "printed"
	}
	return fmt.Sprintf("%d changed: %s", r.changed, r.result)
}
