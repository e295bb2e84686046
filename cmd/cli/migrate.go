package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/tree"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/render"
)

// migrateFlags say what a running cluster is to move to.
type migrateFlags struct {
	inputFlags
	mode, profile, interval, at string
	version                     int
	without                     []string
}

func (f *migrateFlags) add(c *cobra.Command) {
	f.inputFlags.add(c)
	flags := c.Flags()
	flags.StringVar(&f.mode, "mode", "", "`mode` to move to: unicast or multicast (default: what the input says)")
	flags.StringVar(&f.profile, "profile", "", "`profile` to move to: fast, virtual, classic or custom (default: what the input says)")
	flags.IntVar(&f.version, "vrrp-version", 0, "`version` of VRRP, 2 or 3, with --profile custom (default 3)")
	flags.StringVar(&f.interval, "advert-interval", "", "`time` between adverts, such as 100ms, with --profile custom")
	flags.StringVar(&f.at, "at", "", "planned `instant`, such as 2026-05-02T03:00:00Z (default: the nodes choose one when all are ready)")
	flags.StringSliceVar(&f.without, "without", nil, "`nodes` to leave out: not waited for, and kept from holding VIPs")
	flags.StringVar(&f.os, "os", ignition.OpenShift, "operating `system` of the nodes: openshift, fcos or flatcar")
	complete(c, "mode", "unicast", "multicast")
	complete(c, "profile", "fast", "virtual", "classic", "custom")
	complete(c, "os", ignition.OpenShift, ignition.FCOS, ignition.Flatcar)
}

// content is the mode file that the flags ask for.
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
		return m, errors.New("--mode or --profile is missing: what is the cluster to move to?")
	}
	return m, nil
}

func (a *app) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Move a running cluster to another VRRP mode or profile",
		Long: `Move a running cluster between unicast and multicast, or between the profiles
classic, fast, virtual and custom. Nodes that differ in that do not hear each other, so all
of them move at one instant that their agents agree on, when every node is ready.`,
		Example: `  vipgen migrate plan install-config.yaml --profile fast
  vipgen migrate write install-config.yaml --profile fast -o move`,
	}
	c.AddCommand(a.migratePlanCommand(), a.migrateWriteCommand())
	return c
}

func (a *app) migratePlanCommand() *cobra.Command {
	var f migrateFlags
	var o outputFlag
	c := &cobra.Command{
		Use:   "plan [install-config.yaml]",
		Short: "Show the steps of a move, and what clients see",
		Long:  "Show what a move changes, what clients see of it, and step by step what to do. Nothing is written.",
		Example: `  vipgen migrate plan install-config.yaml --mode multicast
  vipgen migrate plan install-config.yaml --profile fast --at 2026-05-02T03:00:00Z
  vipgen migrate plan install-config.yaml --profile fast --without worker-3`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := a.migration(c, installConfigArg(args), &f)
			if err != nil {
				return err
			}
			if o == "json" {
				return a.printJSON(m)
			}
			_, err = fmt.Fprint(a.out, steps(m, installConfigArg(args), "DIR", f.os))
			return err
		},
	}
	f.add(c)
	o.add(c, "text", "json")
	return c
}

func (a *app) migrateWriteCommand() *cobra.Command {
	var f migrateFlags
	var output string
	c := &cobra.Command{
		Use:   "write [install-config.yaml] -o DIR",
		Short: "Write the mode file and the MachineConfigs of a move",
		Long: `Write the mode file that all nodes get, as a plain file and, for OpenShift, in a
MachineConfig for each pool, and print the steps. Applying them is up to you.`,
		Example: `  vipgen migrate write install-config.yaml --mode multicast -o move
  oc apply -f move/machineconfigs`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			a.writes = true
			if output == "" {
				return usage(c, errors.New("-o DIR is missing"))
			}
			m, err := a.migration(c, installConfigArg(args), &f)
			if err != nil {
				return err
			}
			files, err := m.Files()
			if err != nil {
				return err
			}
			var list []tree.File
			for _, x := range files {
				list = append(list, tree.File{Path: x.Path, Data: x.Data})
			}
			if _, err := (tree.Dir{Path: output}).Write(list); err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, steps(m, installConfigArg(args), output, f.os))
			return err
		},
	}
	f.add(c)
	c.Flags().StringVarP(&output, "output", "o", "", "`directory` to write to")
	_ = c.MarkFlagDirname("output")
	return c
}

func (a *app) migration(c *cobra.Command, installConfig string, f *migrateFlags) (*render.Migration, error) {
	content, err := f.content()
	if err != nil {
		return nil, usage(c, err)
	}
	cluster, err := a.quietCluster(installConfig, &f.inputFlags)
	if err != nil {
		return nil, err
	}
	m, err := cluster.Migrate(content)
	if err != nil {
		return nil, usage(c, err)
	}
	return m, nil
}

// steps says what a move is, and what to do.
func steps(m *render.Migration, installConfig, dir, os string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%s moves", m.Cluster)
	say("  from  %s", settings(m.From))
	say("  to    %s", settings(m.To))
	switch {
	case m.At != nil:
		say("  at    %s, if every node is ready by then; else not at all", m.At.UTC().Format(time.RFC3339))
	default:
		say("  at    an instant that the nodes agree on, some 20 s after all of them are ready")
	}
	say("Clients get no answer for %v at most. Connections through a VIP that moves are opened anew.", time.Duration(m.OutageMS)*time.Millisecond)
	if m.From == m.To {
		say("\nThe input says that already. If the nodes run something else, they move as soon as they\nhave what `vipgen render` makes of it, and all of them are ready.")
		return b.String()
	}
	text, _ := m.ModeFile()
	say("\nEvery node gets %s:", v1alpha1.UserModeFile)
	for line := range strings.Lines(string(text)) {
		b.WriteString("  " + line)
	}
	if len(m.Without) > 0 {
		say("\nLeft out: %s. The others do not wait for them, and they hold no VIP while the file", strings.Join(m.Without, ", "))
		say("names them. A node that does not get the file has to be off: power it off, or it may")
		say("hold the VIP beside the others until these go back.")
	}
	say("\nSteps")
	say("1. No update goes on, and all nodes run: `oc get mcp`, `oc get nodes`. A node that is")
	say("   off keeps all of them from moving; one that will not come back is to be deleted.")
	if os == ignition.OpenShift {
		say("2. Give every node the file: `oc apply -f %s/machineconfigs`", dir)
		say("   (%s).", strings.Join(m.MachineConfigs(), ", "))
		say("   With vipgen's node disruption policy no node is drained or rebooted for it; without,")
		say("   the operator reboots one after the other, and the nodes move when all are done.")
	} else {
		say("2. Give every node the file: %s/files%s", dir, v1alpha1.UserModeFile)
	}
	say("3. Watch any node: `vipgen-agent status` in a pod keepalived. It says who is not ready and")
	say("   why, then the instant, then what it runs. To call it off, remove the file again.")
	if len(m.Without) > 0 {
		say("   Nodes that are left out follow when the file names them no longer.")
	}
	say("4. When all nodes run it, put it into spec.vrrp of the vipgen.yaml beside %s,", installConfig)
	say("   render and apply as usual. Nothing moves any more.")
	if os == ignition.OpenShift {
		say("5. `oc delete -f %s/machineconfigs`: the nodes go on by what is rendered.", dir)
	} else {
		say("5. Remove the file: the nodes go on by what is rendered.")
	}
	return b.String()
}
