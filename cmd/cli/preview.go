package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/source"
)

type previewFlags struct {
	inputflags.Flags
	node, role, iface, profile string
	facts, file, dir           string
	addresses, peers           []string
	upstreams                  []string
	bootstrapGone              bool
}

func (a *app) previewCommand() *cobra.Command {
	var f previewFlags
	c := &cobra.Command{
		Use:        "preview [install-config.yaml]",
		SuggestFor: []string{"show", "dump"},
		Short:      "Print exactly what keepalived, HAProxy and CoreDNS of one node will run",
		Long: `Print the final keepalived.conf, haproxy.cfg and Corefile of one node, as the agent
renders them there. Flags or a file (--facts) give what only the node knows. Addresses
and peers of the install-config or agent-config need no flags.

Documentation: ` + command.Pages + `install.md#one-node-in-detail`,
		Example: `  vipgen preview install-config.yaml --node master-0 --role master \
    --interface ens192 --address 192.168.1.10/24 \
    --peer master-1=192.168.1.11 --peer master-2=192.168.1.12

  # One file only; addresses and peers from agent-config.yaml
  vipgen preview install-config.yaml --node master-0 --interface ens192 \
    --file keepalived.conf > keepalived.conf`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		return a.preview(c, installConfig, &f)
	})
	f.Flags.Add(c)
	flags := c.Flags()
	flags.StringVar(&f.node, "node", "", "`name` of the node")
	flags.StringVar(&f.role, "role", "", "`pool` of the node: bootstrap, master, worker, arbiter or a custom one")
	flags.StringVar(&f.iface, "interface", "", "`name` of the interface with the node's addresses")
	flags.StringArrayVar(&f.addresses, "address", nil, "an `address/length` of the node, such as 192.168.1.10/24; repeat it for IPv6")
	flags.StringArrayVar(&f.peers, "peer", nil, "another node, as `name[:role]=address[,address]`, by default of the same role; repeatable")
	flags.StringArrayVar(&f.upstreams, "upstream", nil, "`address` of a DNS server of the node's network; repeatable")
	flags.StringVar(&f.profile, "profile", "", "VRRP `settings`: start or target (default: those of a new node)")
	flags.BoolVar(&f.bootstrapGone, "bootstrap-gone", false, "the bootstrap host is gone")
	flags.StringVar(&f.facts, "facts", "", "`file` with all facts of the node as YAML, instead of flags")
	flags.StringVar(&f.file, "file", "", "print only the file of this `name`: keepalived.conf, haproxy.cfg, Corefile or hosts")
	command.Dir(c, &f.dir, "`directory` to write the files to, under their paths on the node")
	command.Complete(c, "file", "keepalived.conf", "haproxy.cfg", "Corefile", "hosts")
	a.completeFrom(c, "role", &f.Flags, rolesOf, v1alpha1.RoleBootstrap, v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter)
	a.completeFrom(c, "node", &f.Flags, nodesOf)
	command.Complete(c, "profile", "start", "target")
	c.MarkFlagsMutuallyExclusive("file", "dir")
	c.MarkFlagsMutuallyExclusive("facts", "node")
	return c
}

func (a *app) preview(c *cobra.Command, installConfig string, f *previewFlags) error {
	cluster, err := a.quietCluster(installConfig, &f.Flags)
	if err != nil {
		return err
	}
	node, err := a.nodeFacts(cluster, f)
	var bad problem.List
	switch {
	case errors.As(err, &bad):
		return bad
	case err != nil:
		return command.Usage(c, err)
	}
	files, err := render.Preview(cluster.Config, node)
	if err != nil {
		return err
	}
	if f.dir != "" {
		for i := range files {
			files[i].Path = strings.TrimPrefix(files[i].Path, "/")
		}
		return a.writeDir(tree.Dir{Path: f.dir}, files, false)
	}
	return a.printPreview(c, files, f.file)
}

func (a *app) printPreview(c *cobra.Command, files []render.OutputFile, only string) error {
	var names []string
	for i, p := range files {
		name := p.Path[strings.LastIndexByte(p.Path, '/')+1:]
		names = append(names, name)
		switch {
		case only == "":
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			fmt.Fprintf(a.Out, "##### %s\n%s", p.Path, p.Data)
		case only == name:
			_, err := a.Out.Write(p.Data)
			return err
		}
	}
	if only != "" {
		return command.Usagef(c, "--file %s: this node has %s", only, strings.Join(names, ", "))
	}
	return nil
}

func (a *app) nodeFacts(c *render.Cluster, f *previewFlags) (*v1alpha1.Node, error) {
	n := &v1alpha1.Node{Name: f.node, Role: f.role, BootstrapGone: f.bootstrapGone, HAProxy: assets.DaemonsOf(c.Version).HAProxy}
	if f.facts != "" {
		data, err := a.File(f.facts)
		if err != nil {
			return nil, err
		}
		return readFacts(f.facts, data)
	}
	if err := f.fill(n); err != nil {
		return nil, err
	}
	if err := render.Complete(c.Config, n, f.iface); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Roles, n.Role) && n.Role != v1alpha1.RoleBootstrap {
		return nil, fmt.Errorf("--role %s: this cluster has %s", n.Role, strings.Join(c.Roles, ", "))
	}
	switch f.profile {
	case "":
	case "start":
		v := c.Config.Spec.VRRP.Initial()
		n.VRRP = &v
	case "target":
		n.VRRP = &c.Config.Spec.VRRP.Target
	default:
		return nil, fmt.Errorf("--profile %s: expected start or target", f.profile)
	}
	return n, n.Validate().Err()
}

func readFacts(name string, data []byte) (*v1alpha1.Node, error) {
	doc, list := source.Parse(name, data)
	if doc == nil {
		return nil, list
	}
	n := &v1alpha1.Node{}
	if list = doc.DecodeStrict(n); list.Err() != nil {
		return nil, list
	}
	list = doc.Locate(n.Validate())
	list.Sort()
	return n, list.Err()
}

func (f *previewFlags) fill(n *v1alpha1.Node) error {
	if n.Name == "" {
		return fmt.Errorf("missing: --node NAME, or --facts FILE")
	}
	for _, s := range f.addresses {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("--address %s: expected an address with its prefix length, such as 192.168.1.10/24", s)
		}
		if len(n.Interfaces) == 0 {
			n.Interfaces = []v1alpha1.Interface{{Name: f.iface, DefaultRoute4: true, DefaultRoute6: true}}
		}
		n.Interfaces[0].Addresses = append(n.Interfaces[0].Addresses, p)
	}
	var errs [2]error
	n.Upstreams, errs[0] = parseAll(f.upstreams, func(s string) (netip.Addr, error) {
		return parsed(netip.ParseAddr, s, "--upstream %s: expected an address", s)
	})
	n.Peers, errs[1] = parseAll(f.peers, func(s string) (v1alpha1.Peer, error) { return parsePeer("--peer", s) })
	return cmp.Or(errs[:]...)
}

// parsePeer reads the value of a flag, name[:role]=address[,address]; an empty role is filled in
// later.
func parsePeer(flag, s string) (v1alpha1.Peer, error) {
	who, list, ok := strings.Cut(s, "=")
	bad := fmt.Errorf("%s %s: expected name[:role]=address[,address]", flag, s)
	if !ok {
		return v1alpha1.Peer{}, bad
	}
	name, role, _ := strings.Cut(who, ":")
	p := v1alpha1.Peer{Name: name, Role: role}
	var err error
	if p.Addresses, err = parseAll(strings.Split(list, ","), netip.ParseAddr); err != nil {
		return p, bad
	}
	return p, nil
}
