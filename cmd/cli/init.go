package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/source"
)

type initFlags struct {
	from, dir            string
	output               command.Format
	agent                string
	version, profile     string
	loadBalancer         string
	apiVIPs, ingressVIPs []string
	overwrite            bool
}

func (a *app) initCommand() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init [install-config.yaml]",
		Short: "Write a first vipgen.yaml",
		Long: `Write a commented vipgen.yaml into the working directory, or that of --dir. Values
come from flags; at a terminal and without flags, init asks for them. Given an
install-config, or another file that describes a cluster (--from says the same), it
proposes what goes with it, and writes nothing that does not.

-o yaml prints the file and writes nothing. An existing file is kept unless
--overwrite is given.`,
		Example: `  # Ask, then write vipgen.yaml
  vipgen init

  # What goes with an install-config
  vipgen init install-config.yaml --openshift-version 4.18 \
    --agent-image registry.example.com/vipgen-agent@sha256:...

  # For nodes on platform none
  vipgen init --api-vip 192.0.2.5 --ingress-vip 192.0.2.7 -o yaml`,
		Args: command.Args(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			a.Writes = true
			if len(args) == 1 {
				if f.from != "" {
					return command.Usagef(c, "%s and --from cannot be used together", args[0])
				}
				f.from = args[0]
			}
			return a.initConfig(c, &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.from, "from", "", "`file` that describes the cluster: an install-config, a ClusterInstance, a SiteConfig or an AgentClusterInstall")
	command.Dir(c, &f.dir, "`directory` to write to (default: the working directory)")
	f.output.AddOptional(c, "yaml")
	flags.StringVar(&f.agent, "agent-image", "", "`image` of vipgen's agent in your registry, by digest")
	flags.StringVar(&f.version, "openshift-version", "", "OpenShift `version`, "+inputflags.Versions())
	flags.StringVar(&f.profile, "profile", "", "VRRP `profile`: fast, virtual or classic (default: by platform)")
	flags.StringVar(&f.loadBalancer, "load-balancer", "", "`type` of spec.loadBalancer: InCluster, External or None")
	flags.StringSliceVar(&f.apiVIPs, "api-vip", nil, "API `VIP`, one per address family; for platforms that have no field for it")
	flags.StringSliceVar(&f.ingressVIPs, "ingress-vip", nil, "ingress `VIP`, one per address family")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the file")
	command.Complete(c, "openshift-version", ignition.SupportedOpenShift()...)
	command.Complete(c, "profile", string(v1alpha1.ProfileFast), string(v1alpha1.ProfileVirtual), string(v1alpha1.ProfileClassic))
	command.Complete(c, "load-balancer", string(v1alpha1.LoadBalancerInCluster), string(v1alpha1.LoadBalancerExternal), string(v1alpha1.LoadBalancerNone))
	_ = c.MarkFlagFilename("from", "yaml", "yml")
	c.MarkFlagsMutuallyExclusive("dir", "output")
	return c
}

func (a *app) initConfig(c *cobra.Command, f *initFlags) error {
	var sources render.Sources
	var in *render.Input
	if f.from != "" {
		var err error
		if sources, err = a.Sources(f.from, input.Files{}); err != nil {
			return err
		}
		sources.VIPConfig = nil
		var list problem.List
		if in, list = render.Read(sources); list.Err() != nil {
			return in.Report(list)
		}
	}
	if command.Terminal(a.In) && f.from == "" && c.Flags().NFlag() == 0 {
		a.ask(f)
	}
	if known := ignition.SupportedOpenShift(); f.version != "" && !slices.Contains(known, f.version) {
		return command.Usagef(c, "--openshift-version %s: expected %s to %s, without a patch level", f.version, known[0], known[len(known)-1])
	}
	file := render.File{Name: filepath.Join(f.dir, input.VIPConfigName), Data: f.vipConfig(in)}
	if in == nil {
		if err := checkValues(file); err != nil {
			return err
		}
		return a.initWrite(f, file)
	}
	sources.VIPConfig = &file
	_, list, err := render.Load(sources, render.Options{})
	if err != nil {
		return err
	}
	a.Report(list)
	return a.initWrite(f, file)
}

func checkValues(file render.File) error {
	doc, list := source.Parse(file.Name, file.Data)
	if doc == nil {
		return list
	}
	var v v1alpha1.VIPConfig
	list = append(doc.DecodeStrict(&v), doc.Locate(v.Validate())...)
	list.Sort()
	return list.Err()
}

func (a *app) initWrite(f *initFlags, file render.File) error {
	if f.output == "yaml" {
		_, err := a.Out.Write(file.Data)
		return err
	}
	if _, err := os.Lstat(file.Name); !errors.Is(err, fs.ErrNotExist) && !f.overwrite {
		return problem.List{{File: file.Name, Severity: problem.Error, Code: problem.ConflictingFields, Found: "a file of that name",
			Expected: "none", Hint: "--overwrite replaces it, --dir DIR writes another"}}
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0o755); err != nil {
			return err
		}
	}
	if err := tree.WriteFile(file.Name, file.Data); err != nil {
		return err
	}
	a.printStatus("wrote %s", file.Name)
	return nil
}

func (a *app) ask(f *initFlags) {
	in := bufio.NewScanner(a.In)
	one := func(what string) string {
		fmt.Fprintf(a.Err, "%s: ", what)
		if !in.Scan() {
			return ""
		}
		return strings.TrimSpace(in.Text())
	}
	f.agent = one("Image of vipgen's agent in your registry, by digest (empty: fill it in later)")
	f.version = one("OpenShift version, such as 4.18 (empty: any)")
	f.profile = one("VRRP profile, fast, virtual or classic (empty: by platform)")
	f.loadBalancer = one("Load balancer, InCluster, External or None (empty: InCluster)")
	if f.loadBalancer == string(v1alpha1.LoadBalancerNone) {
		return
	}
	fields := func(what string) []string {
		return strings.FieldsFunc(one(what), func(r rune) bool { return r == ',' || r == ' ' })
	}
	f.apiVIPs = fields("API VIPs (empty: the install-config has them)")
	f.ingressVIPs = fields("Ingress VIPs (empty: the install-config has them)")
}

// vipConfig returns the file; in is its cluster, or nil.
func (f *initFlags) vipConfig(in *render.Input) []byte {
	lb, why := f.loadBalancer, ""
	if in != nil {
		why = in.LoadBalancerAdvice()
		if lb == "" && len(f.apiVIPs) == 0 && in.UsuallyWithoutVIPs() {
			lb = string(v1alpha1.LoadBalancerNone)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What the install-config has no field for. 'vipgen explain spec' names all fields.\napiVersion: %s\nkind: %s\nspec:\n", v1alpha1.APIVersion, v1alpha1.KindVIPConfig)
	value := func(comment, field, text, example string) {
		for _, line := range wrap(comment, lineWidth-4) {
			if line == "" {
				continue
			}
			fmt.Fprintf(&b, "  # %s\n", line)
		}
		if text == "" {
			fmt.Fprintf(&b, "  # %s: %s\n", field, example)
		} else {
			fmt.Fprintf(&b, "  %s: %s\n", field, text)
		}
	}
	value("vipgen's image in your own registry: nodes cannot pull the default.",
		"images", mapping("agent", f.agent), "{agent: registry.example.com/vipgen-agent@sha256:"+strings.Repeat("0", 64)+"}")
	policy := ""
	if f.version != "" && assets.AtLeast(f.version, "4.17") {
		policy = "{nodeDisruptionPolicy: true}"
	}
	value("No drain and no reboot for a change of vipgen's files; OpenShift 4.17 and later.",
		"manifests", policy, "{nodeDisruptionPolicy: true}")
	value("The OpenShift version that the cluster runs. Without it the output is written so that all versions can read it.",
		"openshiftVersion", quoted(f.version), `"4.18"`)
	if in == nil || !in.HasVIPs() || len(f.apiVIPs)+len(f.ingressVIPs) > 0 {
		value("VIPs, one per address family, for platforms that have no field for them.", "apiVIPs", quotedList(f.apiVIPs), "[192.0.2.5]")
		value("", "ingressVIPs", quotedList(f.ingressVIPs), "[192.0.2.7]")
	}
	value("InCluster (the default): the nodes hold the VIPs. External: something outside does. None: there are no VIPs, and nodes get DNS alone. "+why,
		"loadBalancer", mapping("type", lb), "{type: InCluster}")
	profile := v1alpha1.ProfileFast
	if in != nil && in.Install != nil {
		profile = render.DefaultProfile(in.Install.Platform)
	}
	value("How fast VIPs move. fast: VRRPv3, within 0.2 s. virtual: VRRPv3, within 0.8 s, and a virtual machine that its hypervisor stops for half a second keeps its VIPs; "+
		"the default on vsphere, openstack, nutanix and ovirt, as fast is elsewhere. classic: VRRPv2, as OpenShift's own keepalived, within four.",
		"vrrp", mapping("profile", f.profile), "{profile: "+string(profile)+"}")
	if f.agent == "" && f.version == "" && f.profile == "" && lb == "" && len(f.apiVIPs)+len(f.ingressVIPs) == 0 {
		return bytes.Replace(b.Bytes(), []byte("\nspec:\n"), []byte("\n# Remove the # from spec and from each field that is to differ.\n# spec:\n"), 1)
	}
	return b.Bytes()
}

// quoted returns text in quotes that YAML reads as text only.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

func quotedList(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return "[" + strings.Join(lists.Map(items, quoted), ", ") + "]"
}

func mapping(key, value string) string {
	if value == "" {
		return ""
	}
	return "{" + key + ": " + quoted(value) + "}"
}
