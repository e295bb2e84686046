package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/companion/metallb"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

type metallbFlags struct {
	inputflags.Flags
	request                       metallb.Request
	dir                           string
	output                        command.Format
	certificate, check, overwrite bool
}

func (a *app) metallbCommand() *cobra.Command {
	var f metallbFlags
	c := &cobra.Command{
		Use:   "metallb [install-config.yaml] --address ADDRESS",
		Short: "Generate MetalLB manifests for an additional API VIP",
		Long: `Print the manifests by which MetalLB announces an additional VIP for the API of a
running cluster: IPAddressPool, L2Advertisement or BGPAdvertisement with its BGPPeers,
Service, and an EndpointSlice of the control-plane nodes for each address family. The
API servers' addresses come from agent-config.yaml, the install-config or --node.

--certificate prints what clients need so that the certificate is valid for them. Names
that the cluster's certificate does not have (--hostname) need an additional one; its
APIServer object is printed there only.

Applying the manifests reboots no node. An APIServer object restarts the API servers
one by one.`,
		Example: `  # Read them, then apply them
  vipgen metallb install-config.yaml --address 192.168.99.17
  vipgen metallb install-config.yaml --address 192.168.99.17 | oc apply -f -

  # The nodes are not in the input
  vipgen metallb install-config.yaml --address 192.168.99.17 \
    --node master-0=192.168.99.23 --node master-1=192.168.99.24 --node master-2=192.168.99.25

  # A selector of the API servers' pods instead of a list of nodes
  vipgen metallb install-config.yaml --address 192.168.99.17 \
    --namespace openshift-kube-apiserver --selector apiserver=true

  # Announced to a router by BGP
  vipgen metallb install-config.yaml --address 203.0.113.17 \
    --asn 64500 --bgp-peer 192.168.99.1=64512

  # What clients need, and the certificate of another name
  vipgen metallb install-config.yaml --address 192.168.99.17 --certificate
  vipgen metallb install-config.yaml --address 192.168.99.17 \
    --hostname api.corp.example --certificate

  # Into a directory, and the check that it is up to date
  vipgen metallb install-config.yaml --address 192.168.99.17 --dir api-vip
  vipgen metallb install-config.yaml --address 192.168.99.17 --dir api-vip --check`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		a.Writes = true
		switch printed := c.Flags().Changed("output"); {
		case f.check && f.dir == "":
			return command.Usagef(c, "--check needs something to check: --dir DIR")
		case printed && (f.dir != "" || f.certificate):
			return command.Usagef(c, "-o is the format of manifests that are printed, without --dir and --certificate")
		}
		return a.metallb(installConfig, &f)
	})
	f.Flags.Add(c)
	f.add(c)
	return c
}

func (f *metallbFlags) add(c *cobra.Command) {
	flags, q := c.Flags(), &f.request
	flags.StringSliceVar(&q.Addresses, "address", nil, "the new `address`; a second one may be of the other family")
	flags.StringVar(&q.Name, "name", metallb.DefaultName, "`name` of the Service, and the beginning of the other objects' names")
	flags.StringVar(&q.Namespace, "namespace", "", "`namespace` of the Service; it must exist (default "+metallb.DefaultNamespace+")")
	flags.StringVar(&q.SystemNamespace, "metallb-namespace", metallb.DefaultSystemNamespace, "`namespace` of MetalLB")
	flags.IntVar(&q.Port, "port", 0, "`port` that clients connect to (default: the API's)")
	flags.StringArrayVar(&q.Nodes, "node", nil, "a control-plane node, as `[name=]address[,address]`, instead of those of the input; repeatable")
	flags.StringArrayVar(&q.Selector, "selector", nil, "label `key=value` of the API servers' pods, instead of a list of nodes; repeatable")
	flags.StringVar(&q.Pool, "pool", "", "`name` of an existing IPAddressPool that has the address; then neither a pool nor an advertisement is written")
	flags.StringVar(&q.Mode, "mode", "", "`mode` of the announcement: l2 or bgp (default l2; bgp with --bgp-peer)")
	flags.StringSliceVar(&q.Interfaces, "interface", nil, "`names` of the interfaces that announce the address, with l2 (default: all)")
	flags.StringArrayVar(&q.NodeLabels, "announce-from", nil, "label `key=value` of the nodes that announce (default: all nodes); repeatable")
	flags.Uint32Var(&q.ASN, "asn", 0, "AS `number` of the cluster, with --bgp-peer")
	flags.StringArrayVar(&q.Peers, "bgp-peer", nil, "a router to announce to, as `address[:port]=ASN`; repeatable (default: the existing BGPPeers)")
	flags.StringVar(&q.PasswordSecret, "bgp-password-secret", "", "`name` of the Secret with the routers' password, in MetalLB's namespace")
	flags.StringVar(&q.AnnotationPrefix, "annotation-prefix", metallb.Prefix, "`prefix` of annotations: metallb.io, or metallb.universe.tf before MetalLB 0.14.9")
	flags.StringSliceVar(&q.Hostnames, "hostname", nil, "additional `names` of the API, which need an additional certificate")
	flags.StringVar(&q.Secret, "certificate-secret", "", "`name` of the Secret with that certificate (default: NAME-certificate)")
	flags.BoolVar(&f.certificate, "certificate", false, "print what clients need, and the APIServer object for --hostname, instead of the manifests")
	f.output.Add(c, "yaml", "json")
	command.Dir(c, &f.dir, "`directory` to write to")
	flags.BoolVar(&f.check, "check", false, "write nothing; print how the files differ, and exit with 1 if they do")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with --dir, replace files that vipgen did not write")
	command.Complete(c, "mode", metallb.ModeL2, metallb.ModeBGP)
	command.Complete(c, "annotation-prefix", metallb.Prefix, metallb.OldPrefix)
	command.Complete(c, "selector", "apiserver=true", "component=kube-apiserver")
	command.Complete(c, "namespace", metallb.DefaultNamespace, "openshift-kube-apiserver", "kube-system")
	command.Complete(c, "announce-from", "node-role.kubernetes.io/control-plane=", "node-role.kubernetes.io/worker=")
	c.MarkFlagsMutuallyExclusive("certificate", "dir")
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
		_, err := a.Out.Write(certificate)
		return err
	}
	objects, err := plan.Objects()
	if err != nil {
		return err
	}
	if f.dir == "" {
		var b strings.Builder
		for _, o := range objects {
			b.WriteString("---\n" + string(o.Data))
		}
		if err := printObjects(a.Out, []byte(b.String()), f.output); err != nil {
			return err
		}
		a.printClients(plan)
		return nil
	}
	files := lists.Map(objects, func(o metallb.Object) render.OutputFile { return render.OutputFile{Path: o.File, Data: o.Data} })
	if plan.NeedsCertificate() {
		files = append(files, render.OutputFile{Path: "certificate/apiserver.yaml", Data: certificate})
	}
	if err := a.writeDir(tree.Dir{Path: f.dir, Overwrite: f.overwrite}, files, f.check); err != nil {
		return err
	}
	a.printClients(plan)
	return nil
}

// metallbPlan reads the cluster and plans the manifests, with the problems of both in one
// report.
func (a *app) metallbPlan(installConfig string, f *metallbFlags) (*metallb.Plan, error) {
	cluster, list, err := f.Cluster(&a.Reader, installConfig)
	if list == nil && !errors.As(err, &list) && err != nil {
		return nil, err
	}
	plan, more := metallb.Resolve(cluster, f.request)
	list = append(append(problem.List{}, list...), more...).Final()
	if err := list.Err(); err != nil {
		return nil, err
	}
	a.Report(list)
	return plan, nil
}

// printClients prints at a terminal what clients have to do.
func (a *app) printClients(p *metallb.Plan) {
	if command.Terminal(a.Err) {
		fmt.Fprintf(a.Err, "Clients use these names: %s. What they need: the same command with --certificate.\n", strings.Join(p.ClientNames(), ", "))
	}
}
