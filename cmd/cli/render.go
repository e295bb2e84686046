package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

type renderFlags struct {
	inputflags.Flags
	dir, beside, installDir, merge string
	formats, roles                 []string
	output                         command.Format
	check, overwrite, allOrNothing bool
	defaultImage                   bool
	kustomization                  bool
}

func (a *app) renderCommand() *cobra.Command {
	var f renderFlags
	c := &cobra.Command{
		Use:        "render [install-config.yaml|DIR|PATTERN]...",
		SuggestFor: []string{"template", "generate", "gen", "build", "create"},
		Short:      "Render MachineConfigs, Ignition and manifests of clusters",
		Long: `Render what the nodes of a cluster get, from its install-config.yaml and, where
they exist, vipgen.yaml and agent-config.yaml next to it, and fleet.yaml next to it
or above.

Without --dir or --beside, print the MachineConfigs and the cluster manifests as one
stream, in YAML or (-o json) in JSON. With --dir, write them as a tree, as a whole or
not at all: files that an earlier run wrote and this one does not are removed, other
files are never touched.

` + reboots + `

Several files, a folder that holds folders of clusters, or a quoted pattern make a
fleet. Its clusters are rendered in parallel; one that has problems fails alone, and
its problems are reported at the end. With --dir DIR each gets its own folder there,
with --beside NAME a folder of that name next to its install-config.

Formats of a tree: machineconfig (a MachineConfig for each pool), ignition (a whole
Ignition config for each pool, and for the bootstrap host where it is vipgen's),
butane (the same as Butane), files (plain files, as they are on the node), configmap
(a ConfigMap of MachineConfigs and manifests, which a ClusterInstance or an
AgentClusterInstall references as extra manifests), extra-manifests (a folder of the
same, which a SiteConfig searches).

Instead of an install-config.yaml a file may hold a ClusterInstance, a SiteConfig, or an
AgentClusterInstall whose ClusterDeployment and NMStateConfigs are in the same file
or folder; of several clusters in a file, FILE#NAME is one.

Exit code 1: --check found a difference. 2: clusters had problems; the others were
written, unless --all-or-nothing.`,
		Example: `  # Read it; see what it would change on a running cluster; apply it
  vipgen render install-config.yaml
  vipgen render install-config.yaml --dir rendered
  oc get machineconfig -o yaml | vipgen diff - rendered
  oc apply -f rendered/machineconfigs -f rendered/manifests

  # A tree to commit, and the check that it is up to date (exit code 1: drift)
  vipgen render install-config.yaml --dir rendered
  vipgen render install-config.yaml --dir rendered --check

  # All clusters of a repository, each next to its input; in CI, the check
  vipgen render clusters --beside rendered
  vipgen render 'clusters/*/install-config.yaml' --dir rendered
  vipgen render clusters --beside rendered --check

  # ClusterInstances: for each the ConfigMap that it references
  vipgen render clusterinstance.yaml --format configmap
  vipgen render 'clusters/*.yaml' --format configmap --dir rendered

  # Into an installer's asset directory, before and after 'create ignition-configs'
  vipgen render install-config.yaml --install-dir ocp
  vipgen render install-config.yaml --merge ocp/bootstrap.ign

  # Ignition for plain Kubernetes on Flatcar
  vipgen render install-config.yaml --os flatcar --format ignition --dir rendered`,
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			a.Writes = true
			if err := f.validate(c.Flags().Changed("output")); err != nil {
				return command.Usage(c, err)
			}
			r, err := clusters(c, args)
			if err != nil {
				return err
			}
			if r.Several {
				return a.renderFleet(c, r, &f)
			}
			return a.render(c, r.Clusters[0].Config, &f)
		},
	}
	f.Flags.Add(c)
	flags := c.Flags()
	formats := formatNames()
	f.output.Add(c, "yaml", "json")
	command.Dir(c, &f.dir, "`directory` to write a tree to")
	flags.StringVar(&f.beside, "beside", "", "`name` of the folder next to each install-config to write a tree to")
	flags.BoolVar(&f.allOrNothing, "all-or-nothing", false, "write no cluster of a fleet when one of them has problems")
	flags.BoolVar(&f.kustomization, "kustomization", false, "write a kustomization.yaml into each tree, with its MachineConfigs and manifests as resources")
	flags.StringSliceVar(&f.formats, "format", nil, "what to render: `list` of "+strings.Join(formats, ", ")+" (default: machineconfig,ignition; ignition for other systems than openshift)")
	flags.StringSliceVar(&f.roles, "role", nil, "only these `pools`, such as master,worker; omits cluster manifests, and does not touch other pools' files")
	flags.StringVar(&f.OS, "os", ignition.OpenShift, "operating `system` of the nodes: openshift, fcos or flatcar")
	flags.BoolVar(&f.check, "check", false, "write nothing; print how the files differ, and exit with 1 if they do")
	flags.StringVar(&f.installDir, "install-dir", "", "asset `directory` of an installer; writes into its openshift/ folder")
	flags.StringVar(&f.merge, "merge", "", "Ignition `file` of an installer to merge into: bootstrap.ign, master.ign, ...")
	allowDefaultImage(c, &f.defaultImage, "with --install-dir and --merge, ")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with --merge, replace files and units that differ; with --dir, files that vipgen did not write")
	command.Complete(c, "format", formats...)
	command.Complete(c, "os", ignition.OpenShift, ignition.FCOS, ignition.Flatcar)
	a.completeFrom(c, "role", &f.Flags, rolesOf, v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter)
	_ = c.MarkFlagDirname("install-dir")
	_ = c.MarkFlagFilename("merge", "ign")
	c.MarkFlagsMutuallyExclusive("dir", "beside", "install-dir", "merge")
	return c
}

func formatNames() []string {
	return lists.Map(render.Formats(), func(f render.Format) string { return string(f) })
}

func (f *renderFlags) validate(formatGiven bool) error {
	prints := f.dir == "" && f.beside == "" && f.installDir == "" && f.merge == ""
	if !slices.Contains([]string{ignition.OpenShift, ignition.FCOS, ignition.Flatcar}, f.OS) {
		return fmt.Errorf("--os %s: expected openshift, fcos or flatcar", f.OS)
	}
	for _, name := range f.formats {
		if !slices.Contains(render.Formats(), render.Format(name)) {
			return fmt.Errorf("--format %s: expected one of %s", name, strings.Join(formatNames(), ", "))
		}
	}
	if len(f.formats) > 0 && (f.installDir != "" || f.merge != "") {
		return fmt.Errorf("--format goes with --dir or standard output: --install-dir takes MachineConfigs, --merge an Ignition config")
	}
	if formatGiven && !(prints && f.streams()) {
		return fmt.Errorf("-o is the format of MachineConfigs and manifests that are printed; --format says what a tree holds")
	}
	if f.beside != "" && (f.beside != filepath.Base(f.beside) || f.beside == "." || f.beside == "..") {
		return fmt.Errorf("--beside %s: expected the name of a folder; for another place, --dir DIR", f.beside)
	}
	if f.kustomization && (f.dir == "" && f.beside == "" || len(f.roles) > 0 || f.OS != ignition.OpenShift) {
		return fmt.Errorf("--kustomization goes with whole trees for OpenShift: --dir DIR or --beside NAME, without --role")
	}
	if f.kustomization && len(f.formats) == 1 && f.formats[0] == string(render.FormatExtraManifests) {
		return fmt.Errorf("--kustomization goes with what is applied; --format extra-manifests is what an installation reads")
	}
	if f.check && prints {
		return fmt.Errorf("--check needs something to check: --dir DIR, --beside NAME, --install-dir DIR or --merge FILE")
	}
	return nil
}

// streams reports whether objects are rendered, which can be printed one after the other.
func (f *renderFlags) streams() bool {
	return len(f.formats) == 0 && f.OS == ignition.OpenShift ||
		len(f.formats) == 1 && (f.formats[0] == string(render.FormatMachineConfig) || render.Format(f.formats[0]).HoldsManifests())
}

// want returns the output that flags select; fallback are the default formats.
func (f *renderFlags) want(fallback ...render.Format) render.Want {
	w := render.Want{Roles: f.roles, Formats: fallback}
	if len(f.formats) > 0 {
		w.Formats = nil
		for _, known := range render.Formats() {
			if slices.Contains(f.formats, string(known)) {
				w.Formats = append(w.Formats, known)
			}
		}
	}
	return w
}

// allowDefaultImage adds the flag for labs, whose image of the agent is not in a registry.
func allowDefaultImage(c *cobra.Command, allowed *bool, with string) {
	c.Flags().BoolVar(allowed, "allow-default-image", false, with+"write vipgen's default image of the agent, which no registry has; for labs that load it into nodes")
}

// checkInstallDir refuses a directory that is no asset directory of an installer, or is one at the
// wrong time: files that it does not read would leave a cluster without VIPs.
func checkInstallDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("--install-dir %s: no such directory", dir)
	}
	for _, name := range []string{"manifests", "openshift", "cluster-manifests"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return nil
		}
	}
	return fmt.Errorf("--install-dir %s: not an installer's asset directory with manifests: run 'openshift-install create manifests --dir %s' "+
		"(agent-based: 'openshift-install agent create cluster-manifests') first", dir, dir)
}

// unresolved warns of domains in an asset directory that the nodes do not resolve.
func (a *app) unresolved(c *render.Cluster, f *renderFlags) error {
	name := filepath.Join(f.installDir, "manifests", input.ClusterIngressName)
	if !input.IsFile(name) {
		return nil
	}
	data, err := a.File(name)
	if err != nil {
		return err
	}
	list := c.Unresolved(render.File{Name: name, Data: data})
	if err := list.Err(); err != nil {
		return err
	}
	a.Report(list)
	return nil
}

func (a *app) render(c *cobra.Command, installConfig string, f *renderFlags) error {
	cluster, err := a.quietCluster(installConfig, &f.Flags)
	if err != nil {
		return err
	}
	if err := checkRoles(cluster, f.roles); err != nil {
		return command.Usage(c, err)
	}
	a.Report(cluster.Unreferenced(f.want()))
	switch {
	case f.merge != "":
		return a.merge(c, cluster, f, installConfig)
	case f.installDir != "":
		if err := checkInstallDir(f.installDir); err != nil {
			return command.Usage(c, err)
		}
		if err := f.checkAgentImage(cluster, installConfig); err != nil {
			return err
		}
		files, err := cluster.InstallDir(f.want())
		if err != nil {
			return command.Usage(c, err)
		}
		if err := a.unresolved(cluster, f); err != nil {
			return err
		}
		return a.write(cluster, tree.Dir{Path: f.installDir, Owned: "openshift/99_vipgen_*.yaml", Overwrite: f.overwrite, Part: len(f.roles) > 0}, files, f.check)
	case f.dir != "", f.beside != "":
		files, err := cluster.Tree(f.treeWant())
		if err != nil {
			return command.Usage(c, err)
		}
		dir := f.dir
		if f.beside != "" {
			if installConfig == "-" {
				return command.Usagef(c, "--beside cannot be used with standard input; give --dir DIR")
			}
			dir = filepath.Join(filepath.Dir(installConfig), f.beside)
		}
		return a.write(cluster, f.tree(dir), files, f.check)
	default:
		return a.stream(c, cluster, f)
	}
}

// checkAgentImage refuses to write an image of the agent that nodes could not pull.
func (f *renderFlags) checkAgentImage(c *render.Cluster, installConfig string) error {
	if f.check || f.defaultImage {
		return nil
	}
	list := render.DefaultAgent(c.Images, problem.Error)
	for i := range list {
		list[i].File = installConfig
	}
	return list.Err()
}

func (f *renderFlags) treeWant() render.Want {
	if f.OS != ignition.OpenShift {
		return f.want(render.FormatIgnition)
	}
	w := f.want(render.FormatMachineConfig, render.FormatIgnition)
	w.Kustomization = f.kustomization
	return w
}

func (f *renderFlags) tree(path string) tree.Dir {
	return tree.Dir{Path: path, Overwrite: f.overwrite, Part: len(f.roles) > 0}
}

func checkRoles(cluster *render.Cluster, roles []string) error {
	for _, role := range roles {
		if role == v1alpha1.RoleBootstrap && !slices.Contains(cluster.Roles, role) {
			return fmt.Errorf("no pool bootstrap: OpenShift's own keepalived holds the API VIP there; with loadBalancer.type: UserManaged in the install-config it is vipgen's")
		}
		if !slices.Contains(cluster.Roles, role) {
			return fmt.Errorf("no pool %q: this cluster has %s", role, strings.Join(cluster.Roles, ", "))
		}
	}
	return nil
}

func (a *app) stream(c *cobra.Command, cluster *render.Cluster, f *renderFlags) error {
	if f.streams() {
		data, err := cluster.Stream(f.want())
		if err != nil {
			return command.Usage(c, err)
		}
		if err := printObjects(a.Out, data, f.output); err != nil {
			return err
		}
		a.summary(cluster, "")
		return nil
	}
	files, err := cluster.Tree(f.want(render.FormatIgnition))
	if err != nil {
		return command.Usage(c, err)
	}
	files = slices.DeleteFunc(files, func(o render.OutputFile) bool { return strings.HasPrefix(o.Path, "manifests/") })
	if len(files) != 1 {
		return command.Usagef(c, "%d files: give --dir DIR, or one --format and one --role", len(files))
	}
	_, err = a.Out.Write(files[0].Data)
	return err
}

func (a *app) write(cluster *render.Cluster, dir tree.Dir, files []render.OutputFile, check bool) error {
	a.summary(cluster, "")
	return a.writeDir(dir, files, check)
}

func (a *app) writeDir(dir tree.Dir, files []render.OutputFile, check bool) error {
	written, err := a.writeTree(a.Out, dir, files, check)
	switch {
	case err != nil:
		return err
	case check:
		a.printStatus("%s: all %d files are as rendered", dir.Path, len(files))
	default:
		a.printStatus("%s", written.In(dir.Path))
	}
	return nil
}

// writeTree writes a tree, or prints how it differs and returns command.ErrFinding.
func (a *app) writeTree(out io.Writer, dir tree.Dir, files []render.OutputFile, check bool) (tree.Result, error) {
	if !check {
		return dir.Write(files)
	}
	changes, err := dir.Compare(files)
	if err != nil || len(changes) == 0 {
		return tree.Result{}, err
	}
	p := a.printer()
	changesText(p, dir.Path, changes)
	_, err = out.Write(p.Bytes())
	return tree.Result{}, found(err, true)
}
