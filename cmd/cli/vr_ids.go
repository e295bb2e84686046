package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/internal/vrrp/routerids"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/source"
)

type vrIDFlags struct {
	fleet   string
	reserve []int
	scans   []string
	fix     bool
	output  command.Format
}

func (a *app) vrIDsCommand() *cobra.Command {
	var f vrIDFlags
	c := &cobra.Command{
		Use:   "vr-ids NAME... | FILE|DIR|PATTERN...",
		Short: "Find virtual router IDs that collide on a network",
		Long: `With names: print the virtual router IDs that OpenShift derives from them, and where
they collide.

With install-configs, folders of clusters or quoted patterns: find the groups of VIPs
whose ID another cluster on the same layer-2 network has (one whose machine networks
overlap, or with the same spec.network in vipgen.yaml), or that is reserved, and
overrides that remove the collisions: of as few groups as it finds. Other IDs stay.

Exit code 1: there are collisions, after --fix ones that it could not remove.`,
		Example: `  vipgen vr-ids vmware cnf10 cnf11
  vipgen vr-ids clusters
  vipgen vr-ids clusters --fix

  # IDs of other routers: listed, or seen on the network
  vipgen vr-ids clusters --reserve 51,52
  vipgen-agent vrrp scan -o json > scan.json
  vipgen vr-ids clusters --scan scan.json`,
		Args:              command.Args(1, -1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.ContainsFunc(args, isPath) {
				if f.fix || len(f.scans)+len(f.reserve) > 0 || f.fleet != "" {
					return command.Usagef(c, "--fix, --reserve, --scan and --fleet need install-configs, not names")
				}
				for _, n := range args {
					if !v1alpha1.ValidName(n) {
						return command.Usagef(c, "%q: expected the name of a cluster (lower-case letters, digits, hyphens and periods), or a path", n)
					}
				}
				return a.namedIDs(args, f.output)
			}
			r, err := clusters(c, args)
			if err != nil {
				return err
			}
			return a.fleetIDs(r.Clusters, &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.fleet, "fleet", "", "VIPConfig `file` with defaults that clusters share (default: the nearest fleet.yaml, next to the install-config or above)")
	flags.IntSliceVar(&f.reserve, "reserve", nil, "`IDs` of other routers on every network, in addition to spec.vrrp.reservedRouterIDs")
	flags.StringSliceVar(&f.scans, "scan", nil, "`files` with the output of 'vipgen-agent vrrp scan -o json'")
	flags.BoolVar(&f.fix, "fix", false, "write the overrides into the vipgen.yaml of each cluster")
	_ = c.MarkFlagFilename("fleet", "yaml", "yml")
	_ = c.MarkFlagFilename("scan", "json")
	f.output.Add(c, "text", "json")
	return c
}

// isPath reports whether an argument is a path and not the name of a cluster.
func isPath(arg string) bool {
	if strings.ContainsAny(arg, `/*?[`) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || arg == "." || arg == ".." {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// fleetIDs finds collisions, and removes them with --fix.
func (a *app) fleetIDs(members []input.Cluster, f *vrIDFlags) error {
	foreign, err := a.scans(f.scans)
	if err != nil {
		return err
	}
	for _, id := range f.reserve {
		if id < 1 || id > 255 {
			return problem.List{{Severity: problem.Error, Code: problem.BadValue, Field: "--reserve", Found: fmt.Sprint(id), Expected: "1 to 255"}}
		}
	}
	clusters, list := a.routerUses(members, f)
	if err := list.Err(); err != nil {
		return err
	}
	a.Report(list)
	report := routerids.Find(clusters, foreign)
	result := &idsResult{clusterList(clusters), report, false}
	if f.fix {
		if err := a.writeOverrides(members, report); err != nil {
			return err
		}
		result.Fixed = true
		if clusters, list = a.routerUses(members, f); list.Err() != nil {
			return list
		}
		if left := routerids.Find(clusters, foreign); len(left.Overrides) > 0 {
			return fmt.Errorf("%s still has to change: run vipgen vr-ids --fix again", left.Overrides[0].Cluster)
		}
	}
	return found(show(a, f.output, result, idsText), len(result.Unsolved) > 0 || len(result.Collisions) > 0 && !f.fix)
}

// routerUses reads the IDs of all clusters. The list has the errors of unreadable files; render
// and validate report the other problems of a cluster.
func (a *app) routerUses(members []input.Cluster, f *vrIDFlags) ([]routerids.Cluster, problem.List) {
	var list problem.List
	clusters := make([]routerids.Cluster, len(members))
	type found struct {
		routerids.Cluster
		problems problem.List
	}
	_ = ordered(len(members), func(i int) (out found) {
		sources, err := a.Sources(members[i].Config, input.Files{Fleet: f.fleet})
		if err != nil {
			errors.As(err, &out.problems)
			return out
		}
		in, problems := render.Read(sources)
		if err := problems.Err(); err != nil {
			out.problems = in.Report(problems).Errors()
			return out
		}
		out.Cluster = in.RouterUses()
		out.File, out.VIPConfig = members[i].Config, overrideFile(members[i])
		out.Reserved = append(slices.Clone(out.Reserved), f.reserve...)
		return out
	}, func(i int, o found) error {
		clusters[i] = o.Cluster
		list = append(list, o.problems...)
		return nil
	})
	list.Sort()
	return clusters, list
}

// scans reads vipgen-agent's scans of the network.
func (a *app) scans(names []string) ([]routerids.Foreign, error) {
	var out []routerids.Foreign
	for _, name := range names {
		data, err := a.File(name)
		if err != nil {
			return nil, err
		}
		var scan struct {
			Routers []struct {
				ID     uint8        `json:"id"`
				Source netip.Addr   `json:"source"`
				VIPs   []netip.Addr `json:"addresses"`
			} `json:"routers"`
		}
		if err := json.Unmarshal(data, &scan); err != nil || scan.Routers == nil {
			return nil, problem.List{{File: name, Severity: problem.Error, Code: problem.Syntax, Found: "something else", Expected: "the output of 'vipgen-agent vrrp scan -o json'"}}
		}
		for _, r := range scan.Routers {
			out = append(out, routerids.Foreign{ID: r.ID, Source: r.Source, VIPs: r.VIPs})
		}
	}
	return out, nil
}

// writeOverrides writes overrides into the clusters' vipgen.yaml: all of a file at once.
func (a *app) writeOverrides(members []input.Cluster, r routerids.Report) error {
	owners := map[string]int{}
	for _, m := range members {
		owners[overrideFile(m)]++
	}
	texts := map[string][]byte{}
	var order []string
	for _, o := range r.Overrides {
		file := o.File
		if owners[file] > 1 {
			return problem.List{{File: file, Severity: problem.Error, Code: problem.ConflictingFields, Found: "the vipgen.yaml of several clusters",
				Expected: "one for each", Hint: "give every cluster its own folder"}}
		}
		text, known := texts[file]
		if !known {
			text = []byte("apiVersion: " + v1alpha1.APIVersion + "\nkind: " + v1alpha1.KindVIPConfig + "\n")
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				if text, err = a.File(file); err != nil {
					return err
				}
			}
			order = append(order, file)
		}
		changed, err := source.SetNumber(text, o.Field, o.To)
		if err != nil {
			return problem.List{{File: file, Severity: problem.Error, Code: problem.ConflictingFields, Field: o.Field, Found: err.Error(),
				Expected: fmt.Sprint(o.To), Hint: "write it by hand; the item may stand in fleet.yaml"}}
		}
		texts[file] = changed
	}
	for _, file := range order {
		if err := tree.WriteFile(file, texts[file]); err != nil {
			return err
		}
	}
	return nil
}

func overrideFile(m input.Cluster) string {
	return filepath.Join(filepath.Dir(m.Config), input.VIPConfigName)
}

type idsResult struct {
	Clusters []clusterIDs `json:"clusters"`
	routerids.Report
	Fixed bool `json:"fixed"`
}

type clusterIDs struct {
	Cluster string         `json:"cluster"`
	File    string         `json:"file"`
	IDs     map[string]int `json:"ids"`
}

func clusterList(clusters []routerids.Cluster) []clusterIDs {
	out := []clusterIDs{}
	for _, c := range clusters {
		ids := map[string]int{}
		for _, u := range c.Uses {
			ids[u.Group] = u.ID
		}
		out = append(out, clusterIDs{c.Name, c.File, ids})
	}
	return out
}

func idsText(out *printer, r *idsResult) {
	w := command.Table(out)
	if len(r.Collisions) > 0 {
		fmt.Fprintln(w, "ID\tOF\tWHERE")
	}
	for _, c := range r.Collisions {
		fmt.Fprintf(w, "%d\t%s\t%s\n", c.ID, strings.Join(c.Users, ", "), c.Why)
	}
	w.Flush()
	if len(r.Overrides) > 0 {
		fmt.Fprintln(out, map[bool]string{false: "\nOverrides that remove them (written by --fix):", true: "\nWritten:"}[r.Fixed])
		for _, v := range r.Overrides {
			fmt.Fprintf(out, "  %s: %s: %d (was %d)\n", command.SafeLine(v.File), v.Field, v.To, v.From)
		}
	}
	for _, u := range r.Unsolved {
		fmt.Fprintf(out, "cannot be removed: %d of %s (%s): %s\n", u.ID, u.User, command.SafeLine(u.File), u.Why)
	}
	fmt.Fprintf(out, "%s in %d clusters\n", cmp.Or(command.Plural(len(r.Collisions), "collision"), "no collision"), len(r.Clusters))
}
