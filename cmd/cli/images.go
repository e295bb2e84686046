package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/render"
)

func (a *app) imagesCommand() *cobra.Command {
	var f inputFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "images [install-config.yaml]",
		Short: "Print the images that a cluster's nodes pull",
		Long: `Print the images that the nodes of a cluster pull, so that they can be mirrored:
those of vipgen.yaml (spec.images), else those of a release (--release-info), else
those of vipgen's table for the OpenShift version.`,
		Example: `  vipgen images install-config.yaml

  # Those of a release, pinned by digest
  oc adm release info -o json > release.json
  vipgen images install-config.yaml --release-info release.json`,
	}
	onCluster(c, func(c *cobra.Command, installConfig string) error {
		cluster, err := a.quietCluster(installConfig, &f)
		if err != nil {
			return err
		}
		if o == "json" {
			return a.printJSON(cluster.Images)
		}
		w := command.Table(a.out)
		for _, i := range render.ImageList(cluster.Images) {
			fmt.Fprintf(w, "%s\t%s\n", i[0], i[1])
		}
		return w.Flush()
	})
	f.add(c)
	o.Add(c, "text", "json")
	return c
}
