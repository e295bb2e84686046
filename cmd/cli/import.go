package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/tree"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/importer"
)

// importFlags are those of `vipgen import`.
type importFlags struct {
	output   string
	form     string
	name     string
	base     string
	mode     string
	networks []string
}

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Make vipgen's input of a cluster that runs without vipgen",
		Long: `Read how a running cluster carries its VIPs today, and make of it an
install-config.yaml and a vipgen.yaml that render the same behaviour: VIPs, virtual
router IDs, unicast or multicast, VRRP version and timing, ports, images.

It takes node files (keepalived.conf, haproxy.cfg, Corefile and their templates, the
pods' manifests, of one node or of several in a folder each), a must-gather, and
exported objects: MachineConfigs and MachineConfigPools, the ControllerConfig, the
Infrastructure, Nodes, Pods, the ConfigMap cluster-config-v1. All of it must be of
one cluster; - is standard input.

The report says what was carried over and from which line, what was assumed because
nothing says it, and what was not carried over, with what vipgen does instead. Where
two places disagree, or something is missing, everything is reported at once and
nothing is written. Pull secrets, SSH keys, kubeconfigs and certificates are not read.`,
		Example: `  oc get controllerconfig,infrastructure,machineconfig,machineconfigpool,node -o yaml > live.yaml
  vipgen import live.yaml --output demo
  vipgen render demo/install-config.yaml

  # A must-gather; the report as JSON
  vipgen import must-gather.local.1234 --output demo -o json

  # Files of nodes alone say neither network nor domain
  vipgen import master-0 master-1 --base-domain example.com --machine-network 192.168.1.0/24`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a.writes = true
			given, err := f.given(c)
			if err != nil {
				return err
			}
			return a.importCluster(args, given, &f)
		},
	}
	c.Flags().StringVar(&f.output, "output", "", "`directory` to write the files into; it must not exist, or be empty")
	c.Flags().StringVarP(&f.form, "report", "o", "text", "`form` of the report: text, json")
	c.Flags().StringVar(&f.name, "cluster-name", "", "the cluster's `name`, where nothing says it")
	c.Flags().StringVar(&f.base, "base-domain", "", "the `domain` that the cluster's names are in, where nothing says it")
	c.Flags().StringSliceVar(&f.networks, "machine-network", nil, "`networks` of the nodes, where nothing says them")
	c.Flags().StringVar(&f.mode, "mode", "", "`how` adverts travel, unicast or multicast, where nothing says it")
	_ = c.MarkFlagDirname("output")
	complete(c, "report", "text", "json")
	complete(c, "mode", string(v1alpha1.ModeUnicast), string(v1alpha1.ModeMulticast))
	return c
}

// given checks flags.
func (f *importFlags) given(c *cobra.Command) (importer.Given, error) {
	g := importer.Given{ClusterName: f.name, BaseDomain: f.base, Mode: v1alpha1.Mode(f.mode)}
	switch {
	case !slices.Contains([]string{"text", "json"}, f.form):
		return g, usage(c, errors.New("-o: expected text or json; --output names the directory"))
	case f.name != "" && !v1alpha1.ValidName(f.name):
		return g, usage(c, errors.New("--cluster-name: expected lower-case letters, digits, hyphens and periods"))
	case f.base != "" && !v1alpha1.ValidName(f.base):
		return g, usage(c, errors.New("--base-domain: expected a DNS name"))
	case f.mode != "" && g.Mode != v1alpha1.ModeUnicast && g.Mode != v1alpha1.ModeMulticast:
		return g, usage(c, errors.New("--mode: expected unicast or multicast"))
	}
	for _, text := range f.networks {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return g, usage(c, fmt.Errorf("--machine-network %s: expected a network such as 192.168.1.0/24", text))
		}
		g.MachineNetworks = append(g.MachineNetworks, p)
	}
	return g, nil
}

func (a *app) importCluster(names []string, given importer.Given, f *importFlags) error {
	if err := newDirectory(f.output); err != nil {
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
	a.report(list)
	out := []tree.File{
		{Path: importer.InstallConfigName, Data: result.InstallConfig},
		{Path: importer.VIPConfigName, Data: result.VIPConfig},
	}
	if f.output != "" {
		// A pattern that fits nothing: no record of what was written, for the
		// files are the user's from now on.
		if _, err := (tree.Dir{Path: f.output, Owned: ".vipgen-import"}).Write(out); err != nil {
			return err
		}
	}
	return a.printImport(result, out, f)
}

// newDirectory refuses one that holds anything.
func newDirectory(name string) error {
	if name == "" {
		return nil
	}
	dir, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(name, err)
	}
	defer dir.Close()
	if _, err := dir.Readdirnames(1); err == io.EOF {
		return nil
	}
	return problem.List{{File: name, Severity: problem.Error, Code: problem.Unreadable, Found: "something that is there already", Expected: "a directory that does not exist, or is empty", Hint: "give --output another name"}}
}

// importFiles reads all that may hold anything, by the names that the user knows.
func (a *app) importFiles(names []string) ([]render.File, error) {
	var out []render.File
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			data, err := a.readFile(name)
			if err != nil {
				return nil, err
			}
			out = append(out, render.File{Name: name, Data: data})
			continue
		}
		if err != nil {
			return nil, unreadable(name, err)
		}
		dir := dirSide{name}
		list, err := dir.list()
		if err != nil {
			return nil, err
		}
		for _, file := range list {
			shown := path.Join(filepath.ToSlash(name), file)
			if !importer.Relevant(file) {
				continue
			}
			data, err := dir.read(file)
			if err != nil {
				return nil, err
			}
			out = append(out, render.File{Name: shown, Data: data})
		}
	}
	return out, nil
}

// printImport prints the files, unless they were written, and the report.
func (a *app) printImport(r *importer.Result, files []tree.File, f *importFlags) error {
	if f.form == "json" {
		contents := map[string]string{}
		for _, file := range files {
			contents[file.Path] = string(file.Data)
		}
		return a.printJSON(struct {
			*importer.Result
			Directory string            `json:"directory,omitempty"`
			Files     map[string]string `json:"files"`
		}{r, f.output, contents})
	}
	var report bytes.Buffer
	importText(&report, r)
	if f.output != "" {
		fmt.Fprintf(&report, "\nWritten: %s\n", safeLine(filepath.Join(f.output, importer.InstallConfigName)+", "+filepath.Join(f.output, importer.VIPConfigName)))
		_, err := a.out.Write(report.Bytes())
		return err
	}
	var b bytes.Buffer
	for _, file := range files {
		fmt.Fprintf(&b, "---\n# %s\n%s", file.Path, file.Data)
	}
	if _, err := a.out.Write(b.Bytes()); err != nil {
		return err
	}
	_, err := a.err.Write(report.Bytes())
	return err
}

// importText is the report for people.
func importText(b *bytes.Buffer, r *importer.Result) {
	line := func(format string, args ...any) { b.WriteString(safeLine(fmt.Sprintf(format, args...)) + "\n") }
	line("Cluster %s", r.Domain)
	b.WriteString("\nCarried over\n")
	for _, c := range r.Carried {
		line("  %-24s %s", c.What, c.Value)
		line("  %-24s   %s", "", c.Place)
	}
	if len(r.Assumed) > 0 {
		b.WriteString("\nAssumed, because nothing says it\n")
	}
	for _, c := range r.Assumed {
		line("  %-24s %s", c.What, c.Value)
		line("  %-24s   %s", "", c.Why)
	}
	importLosses(b, r.Lost, true, "Not carried over, and nodes that differ in it do not hear each other: both sides hold the VIP")
	importLosses(b, r.Lost, false, "Not carried over")
}

// importLosses lists those that keep nodes apart, or the others.
func importLosses(b *bytes.Buffer, all []importer.Loss, apart bool, head string) {
	line := func(format string, args ...any) { b.WriteString(safeLine(fmt.Sprintf(format, args...)) + "\n") }
	for _, l := range all {
		if l.Apart != apart {
			continue
		}
		if head != "" {
			fmt.Fprintf(b, "\n%s\n", head)
			head = ""
		}
		more := ""
		switch n := len(l.Places) - 1; {
		case n == 1:
			more = ", and in 1 more place"
		case n > 1:
			more = fmt.Sprintf(", and in %d more places", n)
		}
		line("  %s%s", l.Places[0], more)
		line("    %s", l.What)
		line("    vipgen: %s", l.Instead)
	}
}
