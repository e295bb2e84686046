package cli

import (
	"errors"
	"fmt"
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
