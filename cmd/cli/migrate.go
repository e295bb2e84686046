package cli

import (
	"errors"
	"fmt"
	"strings"
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

func steps(m *render.Migration, installConfig, dir, os string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if m.From == m.To {
		say("%s: nothing to do, the input has %s already.", m.Cluster, settings(m.To))
		say("If the nodes run something else, they migrate once they have the output of 'vipgen render'")
		say("and all of them are ready.")
		return b.String()
	}
	say("%s migrates", m.Cluster)
	say("  from  %s", settings(m.From))
	say("  to    %s", settings(m.To))
	switch {
	case m.At != nil:
		say("  at    %s, if every node is ready by then; else not at all", m.At.UTC().Format(time.RFC3339))
	default:
		say("  at    an instant that the nodes agree on, about 20s after all of them are ready")
	}
	say("VIPs do not answer for %s at most. Clients reopen connections through a VIP that moves.", command.Millis(m.OutageMS))
	text, _ := m.ModeFile()
	say("\nEvery node gets %s:", v1alpha1.UserModeFile)
	for line := range strings.Lines(string(text)) {
		b.WriteString("  " + line)
	}
	if len(m.Without) > 0 {
		say("\nLeft out: %s. The others do not wait for them, and they hold no VIP while the file", strings.Join(m.Without, ", "))
		say("names them. Power off a node that does not get the file: it could hold the VIP at the")
		say("same time as the others (split brain), until these roll back.")
	}
	say("\nSteps")
	say("1. No update in progress; all nodes Ready: `oc get mcp`, `oc get nodes`. A node that is")
	say("   off keeps all of them from migrating; delete one that will not come back.")
	if os == ignition.OpenShift {
		say("2. Give every node the file: `oc apply -f %s/machineconfigs`", dir)
		say("   (%s).", strings.Join(m.MachineConfigs(), ", "))
		say("   With vipgen's node disruption policy no node is drained or rebooted for it; without,")
		say("   the operator reboots the nodes one by one, and they migrate when all are done.")
		say("   Which of the two: `oc get machineconfig -o yaml > live.yaml` and")
		say("   `vipgen diff live.yaml %s/machineconfigs` first.", dir)
	} else {
		say("2. Give every node the file: %s/files%s", dir, v1alpha1.UserModeFile)
	}
	say("3. Watch any node: `vipgen-agent status` in a keepalived pod. It shows which nodes are not")
	say("   ready and why, then the instant, then the settings in use. To cancel, remove the file.")
	if len(m.Without) > 0 {
		say("   Nodes that were left out follow when the file no longer names them.")
	}
	say("4. When all nodes have migrated, set it in spec.vrrp of the vipgen.yaml next to %s,", installConfig)
	say("   render and apply as usual. No VIP moves for that.")
	if os == ignition.OpenShift {
		say("5. `oc delete -f %s/machineconfigs`: the nodes keep the rendered settings.", dir)
	} else {
		say("5. Remove the file: the nodes keep the rendered settings.")
	}
	return b.String()
}
