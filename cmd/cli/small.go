package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/version"
	"github.com/vipgen/vipgen/render"
)

func asList(err error, into *problem.List) bool { return errors.As(err, into) }

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of vipgen.yaml, for editors",
		Long: `Print the JSON Schema of vipgen.yaml (kind VIPConfig). An editor with a YAML
language server completes and checks the file with this as its first line:

  # yaml-language-server: $schema=vipconfig.schema.json`,
		Example: "  vipgen schema > vipconfig.schema.json",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(v1alpha1.VIPConfigSchema)
			return err
		},
	}
}

func (a *app) imagesCommand() *cobra.Command {
	var f inputFlags
	var o outputFlag
	c := &cobra.Command{
		Use:   "images [install-config.yaml]",
		Short: "Print the images that a render will use",
		Long: `Print the images that nodes of a cluster pull, so that they can be mirrored:
those of vipgen.yaml (spec.images), else those of a release (--release-info), else
vipgen's table for the OpenShift version.`,
		Example: `  vipgen images install-config.yaml

  # Those of a release, pinned by digest
  oc adm release info -o json > release.json
  vipgen images install-config.yaml --release-info release.json`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			cluster, err := a.quietCluster(installConfigArg(args), &f)
			if err != nil {
				return err
			}
			return a.printImages(cluster, o)
		},
	}
	f.add(c)
	o.add(c, "text", "json")
	return c
}

func (a *app) printImages(c *render.Cluster, o outputFlag) error {
	if o == "json" {
		return a.printJSON(c.Images)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, i := range render.ImageList(c.Images) {
		fmt.Fprintf(w, "%s\t%s\n", i[0], i[1])
	}
	return w.Flush()
}

func (a *app) versionCommand() *cobra.Command {
	var o outputFlag
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of vipgen",
		Example: "  vipgen version",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := version.Read()
			if o == "json" {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "vipgen %s (%s)\n", v.Version, v.Go)
			return err
		},
	}
	o.add(c, "text", "json")
	return c
}

// routerIDs are the derived IDs of a cluster, for printing.
type routerIDs struct {
	Cluster string `json:"cluster"`
	API     int    `json:"api"`
	Ingress int    `json:"ingress"`
}

func (a *app) vrIDsCommand() *cobra.Command {
	var o outputFlag
	c := &cobra.Command{
		Use:   "vr-ids NAME...",
		Short: "Print the virtual router IDs of clusters and where they collide",
		Long: `Print the virtual router IDs that are derived from names of clusters, as
OpenShift derives them. Clusters on one layer-2 network must not share one: give
one of them another ID in vipgen.yaml (spec.vrrp.virtualRouterIDs).

Exit code 1: there are collisions.`,
		Example: "  vipgen vr-ids vmware cnf10 cnf11",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, names []string) error {
			for _, n := range names {
				if !v1alpha1.ValidName(n) {
					return usage(c, fmt.Errorf("%q: expected the name of a cluster: lower-case letters, digits, hyphens and periods", n))
				}
			}
			return a.vrIDs(names, o)
		},
	}
	o.add(c, "text", "json")
	return c
}

func (a *app) vrIDs(names []string, o outputFlag) error {
	var ids []routerIDs
	for _, n := range names {
		if !slices.ContainsFunc(ids, func(x routerIDs) bool { return x.Cluster == n }) {
			r := v1alpha1.RouterIDs(n)
			ids = append(ids, routerIDs{n, r.API, r.Ingress})
		}
	}
	collisions := collide(ids)
	if o == "json" {
		err := a.printJSON(struct {
			Clusters   []routerIDs `json:"clusters"`
			Collisions []collision `json:"collisions"`
		}{ids, collisions})
		return errors.Join(err, foundAny(collisions))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tAPI\tINGRESS")
	for _, r := range ids {
		fmt.Fprintf(w, "%s\t%d\t%d\n", r.Cluster, r.API, r.Ingress)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range collisions {
		fmt.Fprintf(a.out, "%s collide at %d; on one network, set spec.vrrp.virtualRouterIDs in vipgen.yaml of one of them\n", strings.Join(c.Users, " and "), c.ID)
	}
	return foundAny(collisions)
}

// collision is an ID with more than one user.
type collision struct {
	ID    int      `json:"id"`
	Users []string `json:"users"`
}

func foundAny(list []collision) error {
	if len(list) > 0 {
		return errFinding
	}
	return nil
}

func collide(ids []routerIDs) []collision {
	users := map[int][]string{}
	for _, r := range ids {
		users[r.API] = append(users[r.API], r.Cluster+"'s API")
		users[r.Ingress] = append(users[r.Ingress], r.Cluster+"'s ingress")
	}
	out := []collision{}
	for id := 1; id <= 255; id++ {
		if len(users[id]) > 1 {
			out = append(out, collision{id, users[id]})
		}
	}
	return out
}
