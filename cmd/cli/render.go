package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/tree"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/render"
)

// renderFlags are those of `vipgen render`.
type renderFlags struct {
	inputFlags
	output, beside, installDir, merge string
	formats, roles                    []string
	check, overwrite, allOrNothing    bool
	kustomization                     bool
}

func (a *app) renderCommand() *cobra.Command {
	var f renderFlags
	c := &cobra.Command{
		Use:   "render [install-config.yaml|DIR|PATTERN]...",
		Short: "Render MachineConfigs, Ignition and manifests of clusters",
		Long: `Render what the nodes of a cluster get, from its install-config.yaml and, where
they are there, vipgen.yaml and agent-config.yaml beside it, and fleet.yaml beside
it or above.

Several files, a folder that holds folders of clusters, or a quoted pattern make a
fleet. Its clusters are rendered in parallel; one that has problems fails alone, and
its problems are reported at the end. With -o DIR each gets a folder of its own there,
with --beside NAME a folder of that name beside its install-config.

Without -o or --beside the MachineConfigs and the cluster manifests are printed as one YAML
stream. With -o they are written as a tree, as a whole or not at all; files that
an earlier run wrote and this one does not are removed, others never touched.

Formats: machineconfig (a MachineConfig for each pool), ignition (a whole Ignition
config for each pool, and for the bootstrap host where it is vipgen's), butane (the
same as Butane), files (plain files, as they lie on the node), configmap (a ConfigMap
of MachineConfigs and manifests, which a ClusterInstance or an AgentClusterInstall
references as extra manifests).

In place of an install-config.yaml a file may hold a ClusterInstance, or an
AgentClusterInstall whose ClusterDeployment and NMStateConfigs are in the same file or
folder; of several clusters in a file, FILE#NAME is one.

Exit code 1: --check found a difference. Exit code 2: clusters had problems; the
others were written, unless --all-or-nothing.`,
		Example: `  # Read it, apply it
  vipgen render install-config.yaml
  vipgen render install-config.yaml | oc apply -f -

  # A tree to commit, and the check that it is up to date (exit code 1: drift)
  vipgen render install-config.yaml -o rendered
  vipgen render install-config.yaml -o rendered --check

  # All clusters of a repository, each beside its input; in CI, the check
  vipgen render clusters --beside rendered
  vipgen render 'clusters/*/install-config.yaml' -o rendered
  vipgen render clusters --beside rendered --check

  # ClusterInstances: for each the ConfigMap that it references
  vipgen render clusterinstance.yaml --format configmap
  vipgen render 'clusters/*.yaml' --format configmap -o rendered

  # Into an installer's asset directory, before and after 'create ignition-configs'
  vipgen render install-config.yaml --install-dir ocp
  vipgen render install-config.yaml --merge ocp/bootstrap.ign

  # Ignition for plain Kubernetes on Flatcar
  vipgen render install-config.yaml --os flatcar --format ignition -o rendered`,
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			a.writes = true
			if err := f.validate(); err != nil {
				return usage(c, err)
			}
			r, err := members(c, args)
			if err != nil {
				return err
			}
			if r.fleet {
				return a.renderFleet(c, r, &f)
			}
			return a.render(c, r.members[0].config, &f)
		},
	}
	f.inputFlags.add(c)
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`directory` to write a tree to")
	flags.StringVar(&f.beside, "beside", "", "`name` of the folder beside each install-config to write a tree to")
	flags.BoolVar(&f.allOrNothing, "all-or-nothing", false, "write no cluster of a fleet when one of them has problems")
	flags.BoolVar(&f.kustomization, "kustomization", false, "write a kustomization.yaml into each tree, with its MachineConfigs and manifests as resources")
	flags.StringSliceVar(&f.formats, "format", nil, "`formats` to write: machineconfig, ignition, butane, files, configmap (default machineconfig,ignition; without machineconfig for other systems than openshift)")
	flags.StringSliceVar(&f.roles, "role", nil, "only these `pools`, such as master,worker; leaves cluster manifests out, and with -o the files of other pools alone")
	flags.StringVar(&f.os, "os", ignition.OpenShift, "operating `system` of the nodes: openshift, fcos or flatcar")
	flags.BoolVar(&f.check, "check", false, "write nothing; show how the output differs and exit with 1 if it does")
	flags.StringVar(&f.installDir, "install-dir", "", "asset `directory` of an installer; writes into its openshift/ folder")
	flags.StringVar(&f.merge, "merge", "", "Ignition `file` of an installer to merge into: bootstrap.ign, master.ign, ...")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with --merge, replace files and units that differ; with -o, files that vipgen did not write")
	complete(c, "format", "machineconfig", "ignition", "butane", "files", "configmap")
	complete(c, "os", ignition.OpenShift, ignition.FCOS, ignition.Flatcar)
	complete(c, "openshift-version", ignition.SupportedOpenShift()...)
	_ = c.MarkFlagDirname("output")
	_ = c.MarkFlagDirname("install-dir")
	_ = c.MarkFlagFilename("merge", "ign")
	c.MarkFlagsMutuallyExclusive("output", "beside", "install-dir", "merge")
	return c
}

// validate checks what flags alone can be wrong about.
func (f *renderFlags) validate() error {
	if !slices.Contains([]string{ignition.OpenShift, ignition.FCOS, ignition.Flatcar}, f.os) {
		return fmt.Errorf("--os %s: expected openshift, fcos or flatcar", f.os)
	}
	for _, name := range f.formats {
		if !slices.Contains(render.Formats(), render.Format(name)) {
			return fmt.Errorf("--format %s: expected machineconfig, ignition, butane, files or configmap", name)
		}
	}
	if len(f.formats) > 0 && (f.installDir != "" || f.merge != "") {
		return fmt.Errorf("--format goes with -o DIR or standard output: --install-dir takes MachineConfigs, --merge an Ignition config")
	}
	if f.beside != "" && (f.beside != filepath.Base(f.beside) || f.beside == "." || f.beside == "..") {
		return fmt.Errorf("--beside %s: expected the name of a folder; for another place, -o DIR", f.beside)
	}
	if f.kustomization && (f.output == "" && f.beside == "" || len(f.roles) > 0 || f.os != ignition.OpenShift) {
		return fmt.Errorf("--kustomization goes with whole trees for OpenShift: -o DIR or --beside NAME, without --role")
	}
	if f.check && f.output == "" && f.beside == "" && f.installDir == "" && f.merge == "" {
		return fmt.Errorf("--check needs something to check: -o DIR, --beside NAME, --install-dir DIR or --merge FILE")
	}
	return nil
}

// want turns flags into what to make; fallback are the formats where the user
// named none.
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

// unresolved warns of domains in an asset directory that the nodes do not resolve.
func (a *app) unresolved(c *render.Cluster, f *renderFlags) error {
	name := filepath.Join(f.installDir, "manifests", clusterIngressName)
	if !isFile(name) {
		return nil
	}
	data, err := a.readFile(name)
	if err != nil {
		return err
	}
	list := c.Unresolved(render.File{Name: name, Data: data})
	if err := list.Err(); err != nil {
		return err
	}
	a.report(list)
	return nil
}

func (a *app) render(c *cobra.Command, installConfig string, f *renderFlags) error {
	cluster, err := a.quietCluster(installConfig, &f.inputFlags)
	if err != nil {
		return err
	}
	if err := checkRoles(cluster, f.roles); err != nil {
		return usage(c, err)
	}
	a.report(cluster.Unreferenced(f.want()))
	r := &render.Renderer{}
	switch {
	case f.merge != "":
		return a.merge(c, r, cluster, f)
	case f.installDir != "":
		files, err := r.InstallDir(cluster, f.want())
		if err != nil {
			return usage(c, err)
		}
		if err := a.unresolved(cluster, f); err != nil {
			return err
		}
		return a.write(cluster, tree.Dir{Path: f.installDir, Owned: "openshift/99_vipgen_*.yaml", Overwrite: f.overwrite, Part: len(f.roles) > 0}, files, f.check)
	case f.output != "", f.beside != "":
		files, err := r.Tree(cluster, f.treeWant())
		if err != nil {
			return usage(c, err)
		}
		dir := f.output
		if f.beside != "" {
			if installConfig == "-" {
				return usage(c, fmt.Errorf("--beside: standard input stands beside nothing; give -o DIR"))
			}
			dir = filepath.Join(filepath.Dir(installConfig), f.beside)
		}
		return a.write(cluster, f.dir(dir), files, f.check)
	default:
		return a.stream(c, r, cluster, f)
	}
}

// treeWant is what a tree holds.
func (f *renderFlags) treeWant() render.Want {
	if f.os != ignition.OpenShift {
		return f.want(render.FormatIgnition)
	}
	w := f.want(render.FormatMachineConfig, render.FormatIgnition)
	w.Kustomization = f.kustomization
	return w
}

// dir is a tree at a path.
func (f *renderFlags) dir(path string) tree.Dir {
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

// stream prints to standard output.
func (a *app) stream(c *cobra.Command, r *render.Renderer, cluster *render.Cluster, f *renderFlags) error {
	if len(f.formats) == 0 && f.os == ignition.OpenShift || len(f.formats) == 1 && (f.formats[0] == string(render.FormatMachineConfig) || f.formats[0] == string(render.FormatConfigMap)) {
		data, err := r.Stream(cluster, f.want())
		if err != nil {
			return usage(c, err)
		}
		if _, err := a.out.Write(data); err != nil {
			return err
		}
		a.summary(cluster, "")
		return nil
	}
	files, err := r.Tree(cluster, f.want(render.FormatIgnition))
	if err != nil {
		return usage(c, err)
	}
	files = slices.DeleteFunc(files, func(o render.OutputFile) bool { return strings.HasPrefix(o.Path, "manifests/") })
	if len(files) != 1 {
		return usage(c, fmt.Errorf("%d files: give -o DIR, or one --format and one --role", len(files)))
	}
	_, err = a.out.Write(files[0].Data)
	return err
}

// write writes or checks a tree and says so.
func (a *app) write(cluster *render.Cluster, dir tree.Dir, files []render.OutputFile, check bool) error {
	written, err := writeTree(a.out, dir, files, check)
	if err != nil {
		return err
	}
	if check {
		a.summary(cluster, dir.Path+" is up to date")
	} else {
		a.summary(cluster, fmt.Sprintf("%s: %s", dir.Path, written))
	}
	return nil
}

// writeTree writes a tree, or prints how it differs: errFinding if it does.
func writeTree(out io.Writer, dir tree.Dir, files []render.OutputFile, check bool) (tree.Result, error) {
	list := make([]tree.File, len(files))
	for i, f := range files {
		list[i] = tree.File{Path: f.Path, Data: f.Data}
	}
	if !check {
		return dir.Write(list)
	}
	changes, err := dir.Compare(list)
	if err != nil || len(changes) == 0 {
		return tree.Result{}, err
	}
	if err := printChanges(out, dir.Path, changes); err != nil {
		return tree.Result{}, err
	}
	return tree.Result{}, errFinding
}

// roleOf guesses the pool of an Ignition file from its name.
func roleOf(file string) string {
	return strings.TrimSuffix(filepath.Base(file), ".ign")
}
