package agentcli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// configFile is a configuration file of a daemon, with its template.
type configFile struct {
	name, template string
	render         func(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error)
}

var configFiles = []configFile{
	{"keepalived.conf", v1alpha1.KeepalivedTemplate, keepalived.Render},
	{"haproxy.cfg", v1alpha1.HAProxyTemplate, haproxy.Render},
	{"Corefile", v1alpha1.CorefileTemplate, coredns.Render},
	{"hosts", v1alpha1.HostsTemplate, coredns.RenderHosts},
}

func (a *app) renderCommand() *cobra.Command {
	var role, facts string
	names := lists.Map(configFiles, func(r configFile) string { return r.name })
	c := &cobra.Command{
		Use:   "render " + strings.Join(names, "|"),
		Short: "Print a configuration file as this node would render it",
		Long: `Render one file from the template and the cluster's facts on this node, and print it.
The node's facts come from a file, or are discovered without the API: its addresses,
and the peers in the cluster's facts.`,
		Example: `  vipgen-agent render keepalived.conf --facts node.yaml
  NODE_NAME=master-0 vipgen-agent render haproxy.cfg --role master`,
		Args:      oneOf(names),
		ValidArgs: names,
		RunE: func(c *cobra.Command, args []string) error {
			if (role == "") == (facts == "") {
				return command.Usagef(c, "missing: --facts or --role, one of them")
			}
			cluster, err := a.clusterFile()
			if err != nil {
				return err
			}
			node, err := a.facts(facts, role, cluster)
			if err != nil {
				return err
			}
			for _, r := range configFiles {
				if r.name == args[0] {
					return a.render(r, cluster, node)
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&role, "role", "", "`pool` of this node, without --facts")
	c.Flags().StringVar(&facts, "facts", "", "`file` with all facts of the node as YAML")
	return c
}

func oneOf(words []string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := command.Args(1, 1)(c, args); err != nil {
			return err
		}
		if !slices.Contains(words, args[0]) {
			return command.Usagef(c, "%q: expected %s", args[0], command.Or(words))
		}
		return nil
	}
}

func (a *app) render(r configFile, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) error {
	text, err := os.ReadFile(a.below(r.template))
	if err != nil {
		return err
	}
	out, err := r.render(string(text), c, n)
	if err != nil {
		return err
	}
	_, err = a.out.Write(out)
	return err
}

// facts reads the facts of the node, or discovers them.
func (a *app) facts(file, role string, c *v1alpha1.ClusterConfig) (*v1alpha1.Node, error) {
	if file == "" {
		name, err := nodeName()
		if err != nil {
			return nil, err
		}
		s, err := nodeip.Read()
		if err != nil {
			return nil, err
		}
		return &v1alpha1.Node{Name: name, Role: role, Peers: c.Spec.Peers, Interfaces: nodeip.Choose(s, &c.Spec, nodeip.Preference{}).Interfaces}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := &v1alpha1.Node{}
	if err := yaml.UnmarshalStrict(data, n); err != nil {
		return nil, &inputError{err}
	}
	if err := n.Validate().Err(); err != nil {
		return nil, &inputError{err}
	}
	return n, nil
}
