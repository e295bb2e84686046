package cli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// addAnnounce adds the flag that selects a built-in cluster.
func addAnnounce(c *cobra.Command, announce *string, value, usage string) {
	c.Flags().StringVar(announce, "announce", value, usage)
	command.Complete(c, "announce", string(v1alpha1.AnnounceVRRP), string(v1alpha1.AnnounceBGP))
}

// clusterOf returns the cluster of the named install-config, or the built-in one whose VIPs are announced as
// named. Racks exclude an install-config with its flags, and the flags named.
func (a *app) clusterOf(c *cobra.Command, announce string, args []string, f *inputflags.Flags, excluded ...string) (*render.Cluster, error) {
	switch v1alpha1.Announce(announce) {
	case v1alpha1.AnnounceVRRP:
		return a.demoOr(args, f)
	case v1alpha1.AnnounceBGP:
		for _, name := range append(excluded, inputflags.Names...) {
			if c.Flags().Changed(name) {
				return nil, command.Usagef(c, "--announce bgp has a built-in cluster, without --%s", name)
			}
		}
		if len(args) > 0 {
			return nil, command.Usagef(c, "--announce bgp has a built-in cluster, without an install-config")
		}
		return lab.Racks()
	}
	return nil, command.Usagef(c, "--announce %s: expected vrrp or bgp", announce)
}

// demoOr returns the cluster of the named install-config, or a small built-in one.
func (a *app) demoOr(args []string, f *inputflags.Flags) (*render.Cluster, error) {
	if len(args) == 0 {
		return lab.Demo()
	}
	return a.elected(args[0], f)
}

// elected returns the cluster of an install-config. VIPs by BGP are an error: no file
// describes the routers of a site.
func (a *app) elected(installConfig string, f *inputflags.Flags) (*render.Cluster, error) {
	sources, o, err := f.Given(&a.Reader, installConfig)
	if err != nil {
		return nil, err
	}
	in, list := render.Read(sources)
	if in == nil {
		return nil, list
	}
	cluster, list, err := in.Load(list, o)
	if err != nil {
		return nil, err
	}
	if field, by := in.VIP.Spec.RoutedIn(); by != "" {
		return nil, problem.List{in.Locate(problem.Problem{Severity: problem.Error, Code: problem.ConflictingFields, Field: field, Found: string(by),
			Expected: "vrrp: the lab of an install-config has no routers",
			Hint:     "'vipgen lab up --announce bgp', 'chaos --announce bgp' and 'bench --profile bgp' build a cluster with routers"})}
	}
	a.Report(list)
	return cluster, nil
}
