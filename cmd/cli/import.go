package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

type importFlags struct {
	dir      string
	output   command.Format
	name     string
	base     string
	mode     string
	agent    string
	networks []string
}

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Generate input from an existing cluster",
		Long: `Read how the VIPs of a running cluster are set up, and generate an
install-config.yaml and a vipgen.yaml that reproduce it: VIPs, virtual
router IDs, unicast or multicast, VRRP version and timing, images.

It takes exported objects of OpenShift ` + ignition.SupportedOpenShift()[0] + ` and later: the ControllerConfig, the
Infrastructure, MachineConfigs and MachineConfigPools, Nodes, Pods, the ConfigMap
cluster-config-v1, MetalLB's BGPPeers, BFDProfiles and BGPAdvertisements; a
must-gather; and files of nodes, in a folder each: keepalived.conf, its template, and
the manifest of its pod. All of it must be of one cluster; - is standard input.

The report lists what was carried over and from which line, what was assumed because
the source does not say it, and what was not carried over, with what vipgen does
instead. 'vipgen diff' compares the files that nodes run. Where two places disagree,
or something is missing, everything is reported at once and nothing is written. Pull
secrets, SSH keys, kubeconfigs and certificates are not read.`,
		Example: `  oc get controllerconfig,infrastructure,machineconfig,machineconfigpool,node -o yaml > live.yaml
  vipgen import live.yaml --dir demo
  vipgen render demo/install-config.yaml

  # A must-gather; the report as JSON
  vipgen import must-gather.local.1234 --dir demo -o json

  # Files of nodes alone have neither network nor domain
  vipgen import master-0 master-1 --base-domain example.com --machine-network 192.168.1.0/24`,
		Args: command.Args(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			defer collectEarlier()()
			a.Writes = true
			given, err := f.given(c)
			if err != nil {
				return err
			}
			return a.importCluster(args, given, &f)
		},
	}
	f.add(c, "`directory` to write the two files to; it must not exist, or be empty (default: print them)")
	return c
}

// add adds the flags; dir is the usage of the directory.
func (f *importFlags) add(c *cobra.Command, dir string) {
	command.Dir(c, &f.dir, dir)
	f.output.Add(c, "text", "json")
	c.Flags().StringVar(&f.name, "cluster-name", "", "the cluster's `name`, if the source does not specify it")
	c.Flags().StringVar(&f.base, "base-domain", "", "base `domain` of the cluster, if the source does not specify it")
	c.Flags().StringSliceVar(&f.networks, "machine-network", nil, "`networks` of the nodes, if the source does not specify them")
	c.Flags().StringVar(&f.mode, "mode", "", "VRRP `mode`, unicast or multicast, if the source does not specify it")
	c.Flags().StringVar(&f.agent, "agent-image", "", "`image` of vipgen's agent in your registry, by digest")
	command.Complete(c, "mode", string(v1alpha1.ModeUnicast), string(v1alpha1.ModeMulticast))
}

func (f *importFlags) given(c *cobra.Command) (importer.Given, error) {
	g := importer.Given{ClusterName: f.name, BaseDomain: f.base, Mode: v1alpha1.Mode(f.mode), AgentImage: f.agent}
	switch {
	case f.agent != "" && !v1alpha1.ValidImage(f.agent):
		return g, command.Usagef(c, "--agent-image: expected an image such as registry.example.com/vipgen-agent@sha256:...")
	case f.name != "" && !v1alpha1.ValidName(f.name):
		return g, command.Usagef(c, "--cluster-name: expected lower-case letters, digits, hyphens and periods")
	case f.base != "" && !v1alpha1.ValidName(f.base):
		return g, command.Usagef(c, "--base-domain: expected a DNS name")
	case f.mode != "" && g.Mode != v1alpha1.ModeUnicast && g.Mode != v1alpha1.ModeMulticast:
		return g, command.Usagef(c, "--mode: expected unicast or multicast")
	}
	for _, text := range f.networks {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return g, command.Usagef(c, "--machine-network %s: expected a network such as 192.168.1.0/24", text)
		}
		g.MachineNetworks = append(g.MachineNetworks, p)
	}
	return g, nil
}

func (a *app) importCluster(names []string, given importer.Given, f *importFlags) error {
	if err := newDirectory(f.dir); err != nil {
		return err
	}
	files, err := a.importFiles(names)
	if err != nil {
		return err
	}
	result, list := importer.Read(files, given)
	if err := list.Err(); err != nil {
		return err
	}
	a.Report(list)
	out := []render.OutputFile{
		{Path: importer.InstallConfigName, Data: result.InstallConfig},
		{Path: importer.VIPConfigName, Data: result.VIPConfig},
	}
	if f.dir != "" {
		// A pattern that matches nothing: written files are not recorded, the user owns them.
		if err := a.writeDir(tree.Dir{Path: f.dir, Owned: ".vipgen-import"}, out, false); err != nil {
			return err
		}
	}
	return a.printImport(result, out, f)
}

func newDirectory(name string) error {
	if name == "" {
		return nil
	}
	dir, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return input.Unreadable(name, err)
	}
	defer dir.Close()
	if _, err := dir.Readdirnames(1); err == io.EOF {
		return nil
	}
	return problem.List{{File: name, Severity: problem.Error, Code: problem.ConflictingFields, Found: "files in it", Expected: "a directory that does not exist, or is empty", Hint: "give --dir another name"}}
}

func (a *app) importFiles(names []string) (out []render.File, err error) {
	var sum input.Sum
	err = a.eachFile(names, importer.Relevant, func(name string, _ bool, data []byte, err error) error {
		if err == nil {
			out, err = append(out, render.File{Name: name, Data: data}), sum.Add(name, data)
		}
		return err
	})
	return out, err
}

// imported is the report with the contents of the files by name.
type imported struct {
	*importer.Result
	Directory string            `json:"directory,omitempty"`
	Files     map[string]string `json:"files"`
}

// printImport prints the files, unless they were written, and the report.
func (a *app) printImport(r *importer.Result, files []render.OutputFile, f *importFlags) error {
	if f.output == "json" {
		contents := map[string]string{}
		for _, file := range files {
			contents[file.Path] = string(file.Data)
		}
		return a.printJSON(imported{r, f.dir, contents})
	}
	var report, stream printer
	importText(&report, r)
	if f.dir != "" {
		_, err := a.Out.Write(report.Bytes())
		return err
	}
	for _, file := range files {
		fmt.Fprintf(&stream, "---\n# %s\n%s", file.Path, file.Data)
	}
	if _, err := a.Out.Write(stream.Bytes()); err != nil {
		return err
	}
	_, err := a.Err.Write(report.Bytes())
	return err
}

func importText(p *printer, r *importer.Result) {
	p.line("Cluster %s", r.Domain)
	p.WriteString("\nCarried over\n")
	for _, c := range r.Carried {
		p.line("  %-24s %s", c.What, c.Value)
		p.line("  %-24s   %s", "", c.Place)
	}
	if len(r.Assumed) > 0 {
		p.WriteString("\nAssumed (not in the source)\n")
	}
	for _, c := range r.Assumed {
		p.line("  %-24s %s", c.What, c.Value)
		p.line("  %-24s   %s", "", c.Why)
	}
	importLosses(p, r.Lost, true, "Not carried over, and a cause of split brain: nodes that differ in it do not receive each other's advertisements")
	importLosses(p, r.Lost, false, "Not carried over")
}

// importLosses lists the losses that separate nodes, or the others.
func importLosses(p *printer, all []importer.Loss, apart bool, head string) {
	for _, l := range all {
		if l.Apart != apart {
			continue
		}
		if head != "" {
			fmt.Fprintf(p, "\n%s\n", head)
			head = ""
		}
		more := ""
		switch n := len(l.Places) - 1; {
		case n == 1:
			more = ", and in 1 more place"
		case n > 1:
			more = fmt.Sprintf(", and in %d more places", n)
		}
		p.line("  %s%s", l.Places[0], more)
		p.line("    %s", l.What)
		p.line("    vipgen: %s", l.Instead)
	}
}
