package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/tree"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/metallb"
)

// metallbFlags are those of `vipgen metallb`.
type metallbFlags struct {
	inputFlags
	request                       metallb.Request
	output                        string
	certificate, check, overwrite bool
}

func (a *app) metallbCommand() *cobra.Command {
	var f metallbFlags
	c := &cobra.Command{
		Use:   "metallb [install-config.yaml] --address ADDRESS",
		Short: "Give the API one more address by MetalLB, after the installation",
		Long: `Print the objects by which MetalLB announces one more address for the API of a
running cluster: IPAddressPool, L2Advertisement or BGPAdvertisement with its BGPPeers,
Service, and an EndpointSlice of the control-plane nodes for each address family. The
API servers' addresses come from agent-config.yaml or the install-config, or by --node.

What clients have to do so that the certificate is right for them: --certificate. Names
that the cluster's own certificate does not have (--hostname) need one of their own;
the APIServer object for that is printed there, and never among the others.`,
		Example: `  vipgen metallb install-config.yaml --address 192.168.99.17 | oc apply -f -

  # The nodes are not in the input
  vipgen metallb install-config.yaml --address 192.168.99.17 \
    --node master-0=192.168.99.23 --node master-1=192.168.99.24 --node master-2=192.168.99.25

  # Pods of the API servers in place of a list of nodes
  vipgen metallb install-config.yaml --address 192.168.99.17 \
    --namespace openshift-kube-apiserver --selector apiserver=true

  # Announced to routers; one of each address family
  vipgen metallb install-config.yaml --address 203.0.113.17 --asn 64500 --bgp-peer 192.168.99.1=64512

  # What clients need, and the certificate of another name
  vipgen metallb install-config.yaml --address 192.168.99.17 --certificate
  vipgen metallb install-config.yaml --address 192.168.99.17 --hostname api.corp.example --certificate

  # Into a directory, and the check that it is up to date
  vipgen metallb install-config.yaml --address 192.168.99.17 -o api-vip
  vipgen metallb install-config.yaml --address 192.168.99.17 -o api-vip --check`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			a.writes = true
			if f.check && f.output == "" {
				return usage(c, errors.New("--check needs something to check: -o DIR"))
			}
			return a.metallb(installConfigArg(args), &f)
		},
	}
	f.inputFlags.add(c)
	f.add(c)
	return c
}

func (f *metallbFlags) add(c *cobra.Command) {
	flags, q := c.Flags(), &f.request
	flags.StringSliceVar(&q.Addresses, "address", nil, "the new `address`; a second one of the other family")
	flags.StringVar(&q.Name, "name", metallb.DefaultName, "`name` of the Service and, with its endings, of the other objects")
	flags.StringVar(&q.Namespace, "namespace", "", "`namespace` of the Service; it has to exist (default "+metallb.DefaultNamespace+")")
	flags.StringVar(&q.SystemNamespace, "metallb-namespace", metallb.DefaultSystemNamespace, "`namespace` that MetalLB runs in")
	flags.IntVar(&q.Port, "port", 0, "`port` that clients connect to (default: the API's own)")
	flags.StringArrayVar(&q.Nodes, "node", nil, "a control-plane node, as `[name=]address[,address]`, in place of those that the input knows; again for each")
	flags.StringArrayVar(&q.Selector, "selector", nil, "`key=value` of a label of the API servers' pods, in place of a list of nodes")
	flags.BoolVar(&q.Endpoints, "endpoints", false, "write an Endpoints in place of EndpointSlices")
	flags.StringVar(&q.Pool, "pool", "", "`name` of an IPAddressPool that is there already and has the address; neither it nor an advertisement is written")
	flags.StringVar(&q.Mode, "mode", "", "how to announce: l2 or bgp (`mode`; default l2, with --bgp-peer bgp)")
	flags.StringSliceVar(&q.Interfaces, "interface", nil, "`names` of the interfaces that answer for the address, with l2 (default: all)")
	flags.StringArrayVar(&q.NodeLabels, "announce-from", nil, "`key=value` of a label of the nodes that announce (default: all nodes)")
	flags.Uint32Var(&q.ASN, "asn", 0, "the cluster's own AS `number`, with --bgp-peer")
	flags.StringArrayVar(&q.Peers, "bgp-peer", nil, "a router to announce to, as `address[:port]=ASN`; again for each (default: the BGPPeers that are there)")
	flags.StringVar(&q.PasswordSecret, "bgp-password-secret", "", "`name` of the Secret with the routers' password, in MetalLB's namespace")
	flags.StringVar(&q.AnnotationPrefix, "annotation-prefix", metallb.Prefix, "`prefix` of annotations: metallb.io, or metallb.universe.tf before MetalLB 0.14.9")
	flags.StringSliceVar(&q.Hostnames, "hostname", nil, "more `names` of the API, which need a certificate of their own")
	flags.StringVar(&q.Secret, "certificate-secret", "", "`name` of the Secret with that certificate (default: the name of the Service and -certificate)")
	flags.BoolVar(&f.certificate, "certificate", false, "print what clients need, and the APIServer object for --hostname, in place of the other objects")
	flags.StringVarP(&f.output, "output", "o", "", "`directory` to write to")
	flags.BoolVar(&f.check, "check", false, "write nothing; show how the directory differs and exit with 1 if it does")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with -o, replace files that vipgen did not write")
	complete(c, "mode", metallb.ModeL2, metallb.ModeBGP)
	complete(c, "annotation-prefix", metallb.Prefix, metallb.OldPrefix)
	complete(c, "selector", "apiserver=true", "component=kube-apiserver")
	complete(c, "namespace", metallb.DefaultNamespace, "openshift-kube-apiserver", "kube-system")
	complete(c, "announce-from", "node-role.kubernetes.io/control-plane=", "node-role.kubernetes.io/worker=")
	_ = c.MarkFlagDirname("output")
	c.MarkFlagsMutuallyExclusive("certificate", "output")
}

func (a *app) metallb(installConfig string, f *metallbFlags) error {
	plan, err := a.metallbPlan(installConfig, f)
	if err != nil {
		return err
	}
	certificate, err := plan.Certificate()
	if err != nil {
		return err
	}
	if f.certificate {
		_, err := a.out.Write(certificate)
		return err
	}
	objects, err := plan.Objects()
	if err != nil {
		return err
	}
	if f.output == "" {
		var b strings.Builder
		for _, o := range objects {
			b.WriteString("---\n" + string(o.Data))
		}
		if _, err := fmt.Fprint(a.out, b.String()); err != nil {
			return err
		}
		a.saysClients(plan)
		return nil
	}
	var files []render.OutputFile
	for _, o := range objects {
		files = append(files, render.OutputFile{Path: o.File, Data: o.Data})
	}
	if plan.NeedsCertificate() {
		files = append(files, render.OutputFile{Path: "certificate/apiserver.yaml", Data: certificate})
	}
	if _, err := writeTree(a.out, tree.Dir{Path: f.output, Overwrite: f.overwrite}, files, f.check); err != nil {
		return err
	}
	a.saysClients(plan)
	return nil
}

// metallbPlan reads the cluster and puts the request to it. Problems of both are
// one report.
func (a *app) metallbPlan(installConfig string, f *metallbFlags) (*metallb.Plan, error) {
	cluster, list, err := a.cluster(installConfig, &f.inputFlags)
	if list == nil && !asList(err, &list) && err != nil {
		return nil, err
	}
	plan, more := metallb.Resolve(cluster, f.request)
	list = append(append(problem.List{}, list...), more...).Final()
	if err := list.Err(); err != nil {
		return nil, err
	}
	a.report(list)
	return plan, nil
}

// saysClients tells a person at a terminal what clients have to do.
func (a *app) saysClients(p *metallb.Plan) {
	if terminal(a.err) {
		fmt.Fprintf(a.err, "Clients use it by name: %s. What they need: the same command with --certificate.\n", strings.Join(p.ClientNames(), ", "))
	}
}
