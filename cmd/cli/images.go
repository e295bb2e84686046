package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/render"
)

func (a *app) imagesCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	c := &cobra.Command{
		Use:   "images [install-config.yaml]",
		Short: "Print the images that a cluster's nodes pull",
		Long: `Print the images that the nodes of a cluster pull, so that they can be mirrored:
those of vipgen.yaml (spec.images), else those of a release (--release-info), else
those of vipgen's table for the OpenShift version.

With -o vipconfig and --release-info, print spec.images for vipgen.yaml with the images of
that release, whatever vipgen.yaml has. 'vipgen validate' warns when pinned images are of
another release than openshiftVersion: take those of the new release with each update.`,
		Example: `  vipgen images install-config.yaml

  # Those of a release, pinned by digest
  oc adm release info -o json > release.json
  vipgen images install-config.yaml --release-info release.json

  # The same for vipgen.yaml
  vipgen images install-config.yaml --release-info release.json -o vipconfig`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		if o == "vipconfig" {
			return a.pinnedImages(c, installConfig, &f)
		}
		cluster, err := a.quietCluster(installConfig, &f)
		if err != nil {
			return err
		}
		return show(a, o, cluster.Images, imagesText)
	})
	f.Add(c)
	o.Add(c, "text", "json", "vipconfig")
	return c
}

func imagesText(out *printer, images v1alpha1.Images) {
	w := command.Table(out)
	for _, i := range render.ImageList(images) {
		fmt.Fprintf(w, "%s\t%s\n", i[0], i[1])
	}
	w.Flush()
}

// pinnedImages prints spec.images with the images of a release.
func (a *app) pinnedImages(c *cobra.Command, installConfig string, f *inputflags.Flags) error {
	if f.Release == "" {
		return command.Usagef(c, "-o vipconfig needs --release-info")
	}
	sources, o, err := f.Given(&a.Reader, installConfig)
	if err != nil {
		return err
	}
	cluster, _, err := render.Load(sources, o) // its warnings are what is printed here
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(map[string]any{"spec": map[string]any{"images": o.Release.Pinned(cluster.Images.Agent)}})
	if err != nil {
		return err
	}
	_, err = a.Out.Write(text)
	return err
}
