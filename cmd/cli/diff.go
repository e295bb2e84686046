package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/ignition/diff"
)

func (a *app) diffCommand() *cobra.Command {
	var o command.Format
	var allowed []string
	var release string
	c := &cobra.Command{
		Use:        "diff A B",
		SuggestFor: []string{"compare", "drift"},
		Short:      "Show what changes on which nodes, and which of them reboot",
		Long: `Compare two sets of MachineConfigs, Ignition configs and manifests: files, folders
(also of a whole fleet), REV:PATH in a Git repository, or what 'oc get machineconfig
-o yaml' exported; - is standard input. Node files and units are decoded, YAML is
compared by field, keepalived.conf, haproxy.cfg and Corefile by block.

For each pool it says what OpenShift's machine config operator will do, and why: write
files only, reload by the agent, restart services, drain or reboot.

Where one side was exported from a cluster and the other is vipgen's output, what is
not vipgen's stays, and the report says which files vipgen replaces. A MachineConfig
that the operator merges after vipgen's and that has one of its files is an error: that
file of vipgen's would never reach the node.

What the operator does depends on its release. An export of a cluster says which one
that is; where neither side does, give it with --openshift-version.

Exit code 0: no difference. 1: there is one. 2: bad input. 4: a file of vipgen's is
shadowed by another MachineConfig.`,
		Example: `  vipgen diff main:clusters clusters
  vipgen diff HEAD~1:clusters/demo/rendered HEAD:clusters/demo/rendered -o markdown
  vipgen diff main:clusters clusters -o html > diff.html
  oc get machineconfig -o yaml | vipgen diff - rendered`,
		Args: command.Args(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if known := ignition.SupportedOpenShift(); release != "" && !slices.Contains(known, release) {
				return command.Usagef(c, "--openshift-version %s: expected %s to %s, without a patch level", release, known[0], known[len(known)-1])
			}
			return a.diff(args[0], args[1], release, o, allowed)
		},
	}
	o.Add(c, "text", "json", "markdown", "html")
	c.Flags().StringSliceVar(&allowed, "allow-shadow", nil, "`names` of files, units or MachineConfigs that may replace vipgen's")
	c.Flags().StringVar(&release, "openshift-version", "", "OpenShift `version` of the operator, "+inputflags.Versions()+" (default: that of an export; without one, what any of them may do)")
	command.Complete(c, "openshift-version", ignition.SupportedOpenShift()...)
	return c
}

type diffReport struct {
	A        string         `json:"a"`
	B        string         `json:"b"`
	Compared int            `json:"compared"`
	Clusters []diff.Result  `json:"clusters"`
	Effects  map[string]int `json:"effects"`
	// release is the command line's, or "".
	release string
	groups  []diffGroup
	byHash  map[[sha256.Size]byte]int
}

// diffGroup holds clusters with the same differences.
type diffGroup struct {
	clusters []string
	diff.Result
}

func (a *app) diff(from, to, release string, o command.Format, allowed []string) error {
	left, err := a.readInventory(from)
	if err != nil {
		return err
	}
	right, err := a.readInventory(to)
	if err != nil {
		return errors.Join(err, left.close())
	}
	report, err := compareSides(left, right, release)
	if err := errors.Join(err, left.close(), right.close()); err != nil {
		return err
	}
	switch o {
	case "markdown":
		err = show(a, o, report, func(p *printer, r *diffReport) { r.markdown(p) })
	case "html":
		err = report.html(a.Out)
	default:
		err = show(a, o, report, func(p *printer, r *diffReport) { r.text(p) })
	}
	if err != nil {
		return err
	}
	if shadowed := report.shadowed(allowed); len(shadowed) > 0 {
		a.Report(shadowed)
		return command.Code(command.Shadowed)
	}
	return found(nil, slices.ContainsFunc(report.Clusters, func(r diff.Result) bool { return !r.Empty() }))
}

// compareSides compares cluster by cluster, so that memory holds two at a time.
func compareSides(left, right *inventory, release string) (*diffReport, error) {
	r := &diffReport{release: release, A: left.arg, B: right.arg, Clusters: []diff.Result{}, Effects: map[string]int{}}
	for _, side := range []*inventory{left, right} {
		if found, err := side.holdsAny(); err != nil || !found {
			return nil, errors.Join(err, side.emptyProblem())
		}
	}
	a, oneA := left.only()
	b, oneB := right.only()
	if oneA && oneB {
		return r, r.add(left, right, a, b)
	}
	names := slices.Collect(maps.Keys(left.files))
	names = slices.AppendSeq(names, maps.Keys(right.files))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := r.add(left, right, name, name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *diffReport) add(left, right *inventory, a, b string) error {
	before, err := left.load(a)
	if err != nil {
		return err
	}
	after, err := right.load(b)
	if err != nil {
		return err
	}
	// Of folders with trees, the other files are their sources.
	counts := left.inTrees[a] || right.inTrees[b] || len(left.inTrees)+len(right.inTrees) == 0
	if counts {
		r.Compared++
	}
	if maps.EqualFunc(before, after, bytes.Equal) && !mayShadow(after) {
		return nil
	}
	old, err := left.decode(a, before)
	if err != nil {
		return err
	}
	now, err := right.decode(b, after)
	if err != nil {
		return err
	}
	now.Release = cmp.Or(r.release, now.Release)
	result := diff.Compare(old, now)
	result.Cluster = clusterLabel(b, now.Name(), old.Name())
	if result.Empty() && len(result.Replaces)+len(result.Shadowed) == 0 {
		return nil
	}
	if !counts {
		r.Compared++
	}
	r.Clusters = append(r.Clusters, result)
	for _, p := range result.Pools {
		r.Effects[p.Effect.String()]++
	}
	r.group(result)
	return nil
}

// mayShadow reports whether files may hold MachineConfigs of others: these are compared even
// where nothing differs.
func mayShadow(files map[string][]byte) bool {
	for name := range files {
		if !strings.Contains(name, "/") {
			return true // not a tree of vipgen's
		}
	}
	return false
}

func clusterLabel(folder string, names ...string) string {
	name := cmp.Or(names...)
	switch {
	case name == "" && folder == ".":
		return "cluster"
	case name == "" || name == folder:
		return folder
	case folder == ".":
		return name
	}
	return name + " (" + folder + ")"
}

// group adds a cluster to the group with the same differences.
func (r *diffReport) group(result diff.Result) {
	label := result.Cluster
	result.Cluster = ""
	text, _ := json.Marshal(result) // marshalling strings and numbers cannot fail
	key := sha256.Sum256(text)
	i, known := r.byHash[key]
	if !known {
		if r.byHash == nil {
			r.byHash = map[[sha256.Size]byte]int{}
		}
		i = len(r.groups)
		r.byHash[key] = i
		r.groups = append(r.groups, diffGroup{Result: result})
	}
	r.groups[i].clusters = append(r.groups[i].clusters, label)
}

// shadowed returns the problems of files that others replace without permission.
func (r *diffReport) shadowed(allowed []string) problem.List {
	var out problem.List
	for _, c := range r.Clusters {
		for _, s := range c.Shadowed {
			if slices.Contains(allowed, s.Name) || slices.Contains(allowed, s.Other) {
				continue
			}
			out = append(out, problem.Problem{Severity: problem.Error, Code: problem.Shadowed, Field: s.Kind + " " + s.Name,
				Found:    fmt.Sprintf("it also in MachineConfig %s of %s, which the operator merges after %s (cluster %s, pool %s)", s.Other, s.Owner, s.Vipgen, c.Cluster, s.Pool),
				Expected: "no MachineConfig after vipgen's with the same path",
				Hint:     "take it out of that MachineConfig; --allow-shadow " + s.Name + " accepts it"})
		}
	}
	return out
}
