package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/companion/externallb"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

// externalFlags are the facts about an external load balancer that the files of a cluster lack.
type externalFlags struct {
	inputflags.Flags
	nodes, balancers, apiVIPs, ingressVIPs, allow []string
	serve                                         []string
	iface                                         string
	routerID                                      int
	bootstrapGone                                 bool
}

func (f *externalFlags) add(c *cobra.Command) {
	f.Flags.Add(c)
	flags := c.Flags()
	flags.StringArrayVar(&f.nodes, "node", nil, "a host of the cluster, as `name[:role]=address[,address]`, beyond those with static addresses in the agent-config or install-config; repeatable")
	flags.StringArrayVar(&f.balancers, "balancer", nil, "a host of the pair that holds the VIPs, as `name=address/length[,address/length]`; give it twice")
	flags.StringVar(&f.iface, "interface", "", "`name` of the interface with the balancers' addresses")
	flags.StringArrayVar(&f.apiVIPs, "api-vip", nil, "`address` of the load balancer for the API (default: the API VIP of the input); repeat it for IPv6")
	flags.StringArrayVar(&f.ingressVIPs, "ingress-vip", nil, "`address` of the load balancer for ingress (default: the ingress VIP of the input); repeat it for IPv6")
	flags.StringArrayVar(&f.allow, "allow", nil, "`network` whose hosts may read machine configs, in addition to the machine networks; repeatable")
	flags.StringSliceVar(&f.serve, "serve", nil, "`services` to balance: api, machine-config, ingress (default: all)")
	flags.IntVar(&f.routerID, "virtual-router-id", 0, "virtual router `ID` of the pair, 1 to 255 (default: derived from the cluster's name)")
	flags.BoolVar(&f.bootstrapGone, "bootstrap-gone", false, "leave out the bootstrap host")
	command.Complete(c, "serve", externallb.Serves()...)
}

func (a *app) externalCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "external-lb",
		Short: "Plan and render external load balancers",
		Long: `Plan and render an external load balancer: HAProxy for API, machine configs and
ingress, and keepalived for a pair of such hosts.
'vipgen external-lb FILE' is 'vipgen external-lb plan FILE'.

Documentation: ` + command.Pages + `external-lb.md`,
		Example: `  vipgen external-lb plan install-config.yaml
  vipgen external-lb render install-config.yaml --api-vip 192.0.2.250 --ingress-vip 192.0.2.250 \
    --balancer lb-0=192.0.2.251/24 --balancer lb-1=192.0.2.252/24 --interface ens192 --dir lb`,
	}, a.externalPlanCommand(), a.externalRenderCommand())
}

func (a *app) externalPlanCommand() *cobra.Command {
	var f externalFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "plan [install-config.yaml]",
		Short: "Show what an external load balancer has to do",
		Long: `Show the ports of an external load balancer, its clients, backends and health checks,
and the names that must resolve to it: for any product, also one that vipgen renders
nothing for.`,
		Example: `  vipgen external-lb plan install-config.yaml

  # Addresses that no file has
  vipgen external-lb plan install-config.yaml \
    --node master-3=192.0.2.13 --node worker-2:worker=192.0.2.22

  # For a program that configures another product
  vipgen external-lb plan install-config.yaml -o json`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		plan, err := quietPlan(a, c, installConfig, &f.Flags, f.options, externallb.Load)
		if err != nil {
			return err
		}
		return show(a, o, plan, externalText)
	})
	f.add(c)
	o.Add(c, "text", "json")
	return c
}

// externalRenderFlags select the output of a plan.
type externalRenderFlags struct {
	externalFlags
	externallb.Want
	format, file, host, dir string
	check, overwrite        bool
}

func (a *app) externalRenderCommand() *cobra.Command {
	var f externalRenderFlags
	c := &cobra.Command{
		Use:   "render [install-config.yaml]",
		Short: "Render haproxy.cfg, and keepalived.conf of a pair",
		Long: `Render what the hosts of an external load balancer run: haproxy.cfg, and with --balancer,
given twice, the keepalived.conf of each. Without --dir, print the files.

Formats: files (plain files, for hosts with the packages of a distribution),
ignition and butane (the same for CoreOS, where units run the daemons from images).`,
		Example: `  # One host, without VIPs
  vipgen external-lb render install-config.yaml --file haproxy.cfg > haproxy.cfg

  # A pair that holds 192.0.2.250
  vipgen external-lb render install-config.yaml --api-vip 192.0.2.250 --ingress-vip 192.0.2.250 \
    --balancer lb-0=192.0.2.251/24 --balancer lb-1=192.0.2.252/24 --interface ens192 --dir lb

  # The same as Butane for two CoreOS hosts
  vipgen external-lb render install-config.yaml --api-vip 192.0.2.250 --ingress-vip 192.0.2.250 \
    --balancer lb-0=192.0.2.251/24 --balancer lb-1=192.0.2.252/24 --interface ens192 \
    --format butane --dir lb`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		a.Writes = true
		if err := f.validate(); err != nil {
			return command.Usage(c, err)
		}
		return a.externalRender(c, installConfig, &f)
	})
	f.externalFlags.add(c)
	flags := c.Flags()
	flags.StringVar(&f.format, "format", string(render.FormatFiles), "what to render: `format` files, ignition or butane")
	flags.StringVar(&f.Want.OS, "os", ignition.FCOS, "operating `system` of the hosts, for Ignition: fcos, or openshift for Red Hat's CoreOS")
	flags.StringVar(&f.file, "file", "", "print only the file of this `name`, such as haproxy.cfg, keepalived.conf or lb-0.ign")
	flags.StringVar(&f.host, "host", "", "print only the files of this `host` of the pair")
	command.Dir(c, &f.dir, "`directory` to write to")
	flags.BoolVar(&f.check, "check", false, "with --dir, write nothing; print how the files differ, and exit with 1 if they do")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with --dir, replace files that vipgen did not write")
	command.Complete(c, "format", "files", "ignition", "butane")
	command.Complete(c, "os", ignition.FCOS, ignition.OpenShift)
	command.Complete(c, "file", "haproxy.cfg", "keepalived.conf")
	c.MarkFlagsMutuallyExclusive("dir", "file")
	c.MarkFlagsMutuallyExclusive("dir", "host")
	return c
}

func (f *externalRenderFlags) validate() error {
	f.Format = render.Format(f.format)
	oneOf := func(flag, value string, known ...string) error {
		if slices.Contains(known, value) {
			return nil
		}
		return fmt.Errorf("--%s %s: expected %s", flag, value, strings.Join(known, " or "))
	}
	if err := errors.Join(
		oneOf("format", f.format, string(render.FormatFiles), string(render.FormatIgnition), string(render.FormatButane)),
		oneOf("os", f.Want.OS, ignition.FCOS, ignition.OpenShift),
	); err != nil {
		return err
	}
	switch {
	case f.Want.OS == ignition.OpenShift && f.Format == render.FormatButane:
		return errors.New("--os openshift: Butane makes MachineConfigs for it, which are for a cluster's nodes; give --format ignition, or --os fcos")
	case f.check && f.dir == "":
		return errors.New("--check needs something to check: --dir DIR")
	}
	return nil
}

func (a *app) externalRender(c *cobra.Command, installConfig string, f *externalRenderFlags) error {
	plan, err := quietPlan(a, c, installConfig, &f.Flags, f.options, externallb.Load)
	if err != nil {
		return err
	}
	files, err := plan.Files(f.Want)
	if err != nil {
		return err
	}
	if f.dir != "" {
		return a.writeDir(tree.Dir{Path: f.dir, Overwrite: f.overwrite}, files, f.check)
	}
	if f.host != "" {
		if !slices.Contains(plan.Hosts(), f.host) {
			return command.Usagef(c, "--host %s: the load balancer has %s", problem.Quote(f.host), strings.Join(plan.Hosts(), ", "))
		}
		files = slices.DeleteFunc(files, func(o render.OutputFile) bool {
			_, rest, _ := strings.Cut(o.Path, "/")
			host, _, deeper := strings.Cut(rest, "/")
			return host != f.host && (deeper || strings.TrimSuffix(rest, path.Ext(rest)) != f.host)
		})
	}
	if f.file != "" {
		if files, err = oneFile(files, f.file); err != nil {
			return command.Usage(c, err)
		}
	}
	return a.printPreview(c, files, f.file)
}

// oneFile keeps the first of several files with one name, which must be identical.
func oneFile(files []render.OutputFile, name string) ([]render.OutputFile, error) {
	found := lists.Filter(files, func(o render.OutputFile) bool { return o.Path[strings.LastIndexByte(o.Path, '/')+1:] == name })
	for _, o := range found {
		if !bytes.Equal(o.Data, found[0].Data) {
			return nil, fmt.Errorf("--file %s: the files of the hosts differ; give --host NAME", name)
		}
	}
	if len(found) == 0 {
		return files, nil
	}
	return found[:1], nil
}

func (f *externalFlags) options() (externallb.Options, error) {
	x := externallb.Options{Interface: f.iface, Serve: f.serve, BootstrapGone: f.bootstrapGone, RouterID: f.routerID}
	var errs [5]error
	x.Nodes, errs[0] = parseAll(f.nodes, func(s string) (v1alpha1.Peer, error) { return parsePeer("--node", s) })
	x.Balancers, errs[1] = parseAll(f.balancers, parseBalancer)
	x.APIVIPs, errs[2] = parseAddresses("--api-vip", f.apiVIPs)
	x.IngressVIPs, errs[3] = parseAddresses("--ingress-vip", f.ingressVIPs)
	x.Allow, errs[4] = parseAll(f.allow, func(s string) (netip.Prefix, error) {
		return parsed(netip.ParsePrefix, s, "--allow %s: expected a network in CIDR notation, such as 192.0.2.0/24", problem.Quote(s))
	})
	return x, cmp.Or(errs[:]...)
}

func parseAddresses(flag string, list []string) ([]netip.Addr, error) {
	return parseAll(list, func(s string) (netip.Addr, error) {
		return parsed(netip.ParseAddr, s, "%s %s: expected an address", flag, problem.Quote(s))
	})
}

func parseBalancer(s string) (b externallb.Balancer, err error) {
	name, list, ok := strings.Cut(s, "=")
	bad := fmt.Errorf("--balancer %s: expected name=address/length[,address/length], such as lb-0=192.0.2.251/24", problem.Quote(s))
	if !ok {
		return b, bad
	}
	b.Name = name
	if b.Addresses, err = parseAll(strings.Split(list, ","), netip.ParsePrefix); err != nil {
		return b, bad
	}
	return b, nil
}

// externalText prints what a load balancer has to do, without spaces at the ends of lines.
func externalText(out *printer, p *externallb.Plan) {
	var b bytes.Buffer
	w := command.Table(&b)
	fmt.Fprintln(w, "PORT\tSERVICE\tFOR\tSERVERS\tHEALTHY IF 200")
	for _, s := range p.Services {
		for _, backend := range s.Backends {
			for i, server := range backend.Servers {
				if i > 0 {
					fmt.Fprintf(w, "\t\t\t%s %s\t\n", server.Name, server.Address)
					continue
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s %s\t%s\n", s.Port, s.Name, clientsOf(s, backend), server.Name, server.Address, health(s, backend.Check))
			}
		}
	}
	if len(p.DNS) > 0 {
		fmt.Fprintln(w, "\nNAME\tRESOLVES TO")
	}
	for _, n := range p.DNS {
		fmt.Fprintf(w, "%s\t%s\n", n.Name, cmp.Or(list(n.Addresses), "the load balancer"))
	}
	if len(p.Pair) > 0 {
		fmt.Fprintln(w, "\nBALANCER\tINTERFACE\tADDRESSES\tVIRTUAL ROUTER ID")
	}
	for _, h := range p.Pair {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", h.Name, h.Interface, list(h.Addresses), h.RouterID)
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func clientsOf(s externallb.Service, b externallb.Backend) string {
	switch {
	case len(s.Only) > 0:
		return list(s.Only) + " only"
	case len(b.VIPs) > 0:
		return "clients of " + list(b.VIPs)
	}
	return "all clients"
}

func health(s externallb.Service, c externallb.Check) string {
	scheme, port := "http", s.Port
	if c.TLS {
		scheme = "https"
	}
	if c.Port != 0 {
		port = c.Port
	}
	return fmt.Sprintf("%s :%d%s", scheme, port, c.Path)
}
