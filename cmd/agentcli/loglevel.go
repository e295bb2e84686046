package agentcli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// noLevel resets jobs to the level of their command lines.
const noLevel = "default"

func (a *app) logLevelCommand() *cobra.Command {
	var o command.Format
	var job string
	known := jobNames()
	c := &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Print or change how much the jobs of this node log, while they run",
		Long: `Set the lowest level that the jobs on this node log: DEBUG, INFO, WARN or ERROR. It
applies at once. The level of one job (--job) overrides that of all jobs. The level
"default" resets to --log-level of the job's command line. A reboot resets it, too.
Without LEVEL, print the levels.

A container can change the level of its job only, with --job. For all jobs, run it on
the host, or write the level to /run/vipgen/log-level there.`,
		Example: `  vipgen-agent log-level DEBUG
  vipgen-agent log-level INFO --job haproxy
  vipgen-agent log-level default
  vipgen-agent log-level -o json`,
		Args: command.Args(0, 1),
		RunE: func(c *cobra.Command, words []string) error {
			if job != "" && !slices.Contains(known, job) {
				return command.Usagef(c, "--job: %q is not a job, expected one of %s", job, strings.Join(known, ", "))
			}
			if len(words) == 0 {
				return a.printLevels(job, o == "json")
			}
			dir := a.below(v1alpha1.RunDir)
			set := func() error { return logging.ResetLevel(dir, job) }
			if words[0] != noLevel {
				level, err := logging.ParseLevel(words[0])
				if err != nil {
					return command.Usage(c, err)
				}
				set = func() error { return logging.SetLevel(dir, job, level) }
			}
			err := set()
			if errors.Is(err, unix.EROFS) {
				err = fmt.Errorf("%w: a container can change the level of its job only, with --job", err)
			}
			return err
		},
	}
	c.Flags().StringVar(&job, "job", "", "only this `job`: "+strings.Join(known, ", "))
	o.Add(c, "text", "json")
	return c
}

// levels holds the levels set for all jobs and for some of them.
type levels struct {
	Level string            `json:"level"`
	Jobs  map[string]string `json:"jobs,omitempty"`
}

// printLevels prints the level of one job, or the one for all and deviating ones. An
// invalid file is a finding.
func (a *app) printLevels(job string, asJSON bool) error {
	out := levels{Jobs: map[string]string{}}
	var wrong []error
	ask := []string{""}
	if job != "" {
		ask = append(ask, job)
	} else {
		ask = append(ask, jobNames()...)
	}
	out.Level = noLevel
	for _, name := range ask {
		level, set, err := logging.Level(a.below(v1alpha1.RunDir), name)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case set && name == "":
			out.Level = level.String()
		case set:
			out.Jobs[name] = level.String()
		}
	}
	if job != "" { // the effective one
		if own, set := out.Jobs[job]; set {
			out.Level = own
		}
		out.Jobs = nil
	}
	if err := a.printLevel(out, asJSON); err != nil {
		return err
	}
	if err := errors.Join(wrong...); err != nil {
		a.log.Error("invalid log level ignored", "error", err)
		return command.ErrFinding
	}
	return nil
}

func (a *app) printLevel(l levels, asJSON bool) error {
	if asJSON {
		return a.printJSON(l)
	}
	fmt.Fprintln(a.out, l.Level)
	for _, name := range jobNames() {
		if own, set := l.Jobs[name]; set {
			fmt.Fprintln(a.out, name, own)
		}
	}
	return nil
}
