package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

// migrateFlags are the settings that a running cluster migrates to.
type migrateFlags struct {
	inputflags.Flags
	mode, profile, interval, at string
	version                     int
	without                     []string
}

// add adds the flags; running is set for the running cluster, not that of files.
func (f *migrateFlags) add(c *cobra.Command, running bool) {
	flags := c.Flags()
	flags.StringVar(&f.mode, "mode", "", "`mode` to migrate to: unicast or multicast (default: that of the input)")
	flags.StringVar(&f.profile, "profile", "", "`profile` to migrate to: fast, virtual, classic or custom (default: that of the input)")
	flags.IntVar(&f.version, "vrrp-version", 0, "VRRP `version`, 2 or 3, with --profile custom (default 3)")
	flags.StringVar(&f.interval, "advert-interval", "", "advertisement interval, a `duration` such as 100ms, with --profile custom")
	flags.StringVar(&f.at, "at", "", "planned `instant`, such as 2026-05-02T03:00:00Z (default: the nodes agree on one when all are ready)")
	flags.StringSliceVar(&f.without, "without", nil, "`nodes` to leave out: the others do not wait for them, and they hold no VIP")
	command.Complete(c, "mode", "unicast", "multicast")
	command.Complete(c, "profile", "fast", "virtual", "classic", "custom")
	if f.OS = ignition.OpenShift; running {
		return
	}
	f.Flags.Add(c)
	flags.StringVar(&f.OS, "os", ignition.OpenShift, "operating `system` of the nodes: openshift, fcos or flatcar")
	command.Complete(c, "os", ignition.OpenShift, ignition.FCOS, ignition.Flatcar)
}

func (f *migrateFlags) content() (m v1alpha1.ModeFileContent, err error) {
	m.Mode, m.Profile, m.Version = v1alpha1.Mode(f.mode), v1alpha1.Profile(f.profile), f.version
	if f.interval != "" {
		if err := m.AdvertInterval.UnmarshalText([]byte(f.interval)); err != nil {
			return m, fmt.Errorf("--advert-interval %q: expected %w", f.interval, err)
		}
	}
	if f.at != "" {
		at, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return m, fmt.Errorf("--at %q: expected an instant, such as 2026-05-02T03:00:00Z", f.at)
		}
		at = at.UTC()
		m.Time = &at
	}
	m.Without = f.without
	if f.mode == "" && f.profile == "" {
		return m, errors.New("missing: --mode or --profile, to migrate to")
	}
	return m, nil
}

func (a *app) migrateCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "migrate",
		Short: "Migrate a running cluster to another VRRP mode or timing",
		Long: `Migrate a running cluster between unicast and multicast, or between the profiles
classic, fast, virtual and custom. Nodes that differ in these do not interoperate, so
all of them migrate at one instant that their agents agree on, when every node is ready.
'vipgen migrate FILE' is 'vipgen migrate plan FILE'.`,
		Example: `  vipgen migrate plan install-config.yaml --profile fast
  vipgen migrate write install-config.yaml --profile fast --dir migration`,
	}, a.migratePlanCommand(), a.migrateWriteCommand())
}

// migrationPlan is a migration with its steps, as printed.
type migrationPlan struct {
	*render.Migration
	// ModeFile is the file for every node, and Steps is the plan as text.
	ModeFile string `json:"modeFile"`
	Steps    string `json:"steps"`
}

func (a *app) migratePlanCommand() *cobra.Command {
	var f migrateFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "plan [install-config.yaml]",
		Short: "Show the steps of a migration, and what clients see",
		Long:  "Show what a migration changes, what clients see of it, and the steps. Nothing is written.",
		Example: `  vipgen migrate plan install-config.yaml --mode multicast
  vipgen migrate plan install-config.yaml --profile fast --at 2026-05-02T03:00:00Z
  vipgen migrate plan install-config.yaml --profile fast --without worker-3`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		m, err := a.migration(c, installConfig, &f)
		if err != nil {
			return err
		}
		text, err := m.ModeFile()
		if err != nil {
			return err
		}
		plan := migrationPlan{m, string(text), steps(m, installConfig, "DIR", f.OS)}
		return show(a, o, plan, func(p *printer, plan migrationPlan) { p.WriteString(plan.Steps) })
	})
	f.add(c, a.running != nil)
	a.completeFrom(c, "without", &f.Flags, nodesOf)
	o.Add(c, "text", "json")
	return c
}

func (a *app) migrateWriteCommand() *cobra.Command {
	var f migrateFlags
	var dir string
	c := &cobra.Command{
		Use:   "write [install-config.yaml] --dir DIR",
		Short: "Write the mode file and the MachineConfigs of a migration",
		Long: `Write the mode file that all nodes get, as a plain file and, for OpenShift, in a
MachineConfig for each pool, and print the steps. Applying them is up to you.

With vipgen's node disruption policy no node is drained or rebooted for it. Without,
the operator reboots the nodes of each pool one by one. 'vipgen diff' shows which.`,
		Example: `  vipgen migrate write install-config.yaml --mode multicast --dir migration

  # Which pools reboot for it; then apply it
  oc get machineconfig -o yaml > live.yaml
  vipgen diff live.yaml migration/machineconfigs
  oc apply -f migration/machineconfigs`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		a.Writes = true
		if dir == "" {
			return command.Usagef(c, "missing: --dir DIR")
		}
		m, err := a.migration(c, installConfig, &f)
		if err != nil {
			return err
		}
		if m.From == m.To {
			return command.Usagef(c, "nothing to do: the input has %s already", settings(m.To))
		}
		files, err := m.Files()
		if err != nil {
			return err
		}
		if err := a.writeDir(tree.Dir{Path: dir}, files, false); err != nil {
			return err
		}
		_, err = fmt.Fprint(a.Out, steps(m, installConfig, dir, f.OS))
		return err
	})
	f.add(c, a.running != nil)
	a.completeFrom(c, "without", &f.Flags, nodesOf)
	command.Dir(c, &dir, "`directory` to write to")
	return c
}

func (a *app) migration(c *cobra.Command, installConfig string, f *migrateFlags) (*render.Migration, error) {
	content, err := f.content()
	if err != nil {
		return nil, command.Usage(c, err)
	}
	read := a.running
	if read == nil {
		read = func() (*render.Cluster, error) { return a.quietCluster(installConfig, &f.Flags) }
	}
	cluster, err := read()
	if err != nil {
		return nil, err
	}
	m, err := cluster.Migrate(content)
	if err != nil {
		return nil, command.Usage(c, err)
	}
	return m, nil
}

//go:embed migrate.txt.tmpl
var stepsText string

// steps describes a migration and its steps.
func steps(m *render.Migration, installConfig, dir, os string) string {
	text, _ := m.ModeFile() // it was made before
	page := template.Must(template.New("steps").Funcs(template.FuncMap{
		"settings": settings, "millis": command.Millis[int], "join": strings.Join,
	}).Parse(stepsText))
	var b strings.Builder
	err := page.Execute(&b, struct {
		*render.Migration
		File, Text, InstallConfig, Dir string
		OpenShift                      bool
	}{m, v1alpha1.UserModeFile, "  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  "), installConfig, dir, os == ignition.OpenShift})
	if err != nil {
		panic(err) // the text is part of the program, and tested
	}
	return b.String()
}
