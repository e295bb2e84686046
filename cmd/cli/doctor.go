package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/input"
)

// doctorFlags select the moves to show.
type doctorFlags struct {
	vip, since string
	unplanned  bool
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "doctor FILE|DIR...",
		Short: "Find out why VIPs moved, from the records of the nodes",
		Long: `Read the records of events that vipgen-agent keeps on each node, and print for each move
of a VIP: from which node to which, the cause and how sure it is, for how long the VIP had
no holder or two, and the events it is based on. Of VIPs by BGP, holders are the nodes that
routers use, and a session that is lost or refused counts as well.

A record is two files, ` + events.FileName + ` and ` + events.OlderName + `
in /etc/keepalived of each node that can hold VIPs, and in /var/lib/vipgen/bgp of those that
announce some by BGP. In a DIR, files that are named like
them are found at any depth. Some nodes may be missing; truncated lines are skipped; clock
skew is corrected by advertisements.

Exit code 0: every move was planned, or to a better node. 1: a VIP moved for another
reason. 2: no event in the input. 3: a file cannot be read, or there is no record.

Documentation: ` + command.Pages + `troubleshoot.md#doctor`,
		Example: `  # Collect the records of all nodes
  mkdir -p records
  for n in $(oc get nodes -o name); do
    oc debug -q $n -- sh -c \
      'cd /host; cat etc/keepalived/.vipgen-ev* var/lib/vipgen/bgp/.vipgen-ev*' \
      > records/${n#node/}-vipgen-events.jsonl
  done

  vipgen doctor records
  vipgen doctor records --vip 192.0.2.5 --since 24h
  vipgen doctor records -o html > moves.html

  # Files as they are on nodes
  vipgen doctor master-0/etc/keepalived master-1/etc/keepalived`,
		Args: command.Args(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			choose, err := f.read()
			if err != nil {
				return command.Usage(c, err)
			}
			return a.doctor(args, choose, o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.vip, "vip", "", "show only this VIP, by its `address`")
	flags.StringVar(&f.since, "since", "", "show what happened since this `timestamp`: 2026-01-31T13:00:00Z, or 24h before the last event")
	flags.BoolVar(&f.unplanned, "unplanned", false, "leave out moves that were planned, or to a better node")
	o.Add(c, "text", "json", "html")
	return c
}

func (f *doctorFlags) read() (func(*doctor.Report, *doctor.Move) bool, error) {
	var vip netip.Addr
	var since time.Time
	var before time.Duration
	var err error
	if f.vip != "" {
		if vip, err = netip.ParseAddr(f.vip); err != nil {
			return nil, fmt.Errorf("--vip %q: expected an address", f.vip)
		}
	}
	if f.since != "" {
		if since, err = time.Parse(time.RFC3339, f.since); err != nil {
			if before, err = time.ParseDuration(f.since); err != nil || before <= 0 {
				return nil, fmt.Errorf("--since %q: expected a time, such as 2026-01-31T13:00:00Z, or a duration, such as 24h", f.since)
			}
		}
	}
	return func(r *doctor.Report, m *doctor.Move) bool {
		from := since
		if before > 0 {
			from = r.To.Add(-before)
		}
		return (!vip.IsValid() || slices.Contains(m.VIPs, vip)) && !m.At.Before(from) && !(f.unplanned && m.Cause.Planned())
	}, nil
}

func (a *app) doctor(args []string, choose func(*doctor.Report, *doctor.Move) bool, o command.Format) error {
	files, err := args, error(nil)
	if !slices.Equal(args, []string{"-"}) {
		if files, err = doctor.Files(args); err != nil {
			return input.Unreadable(args[0], err)
		}
	}
	list, read, err := doctor.ReadFiles(files, a.In)
	if err != nil {
		return input.Unreadable(args[0], err)
	}
	if len(list) == 0 {
		return problem.List{{File: args[0], Severity: problem.Error, Code: problem.Syntax, Found: "no event", Expected: "a record of vipgen-agent: one JSON event per line"}}
	}
	r := doctor.Diagnose(list)
	unplanned := slices.ContainsFunc(r.Moves, func(m doctor.Move) bool { return choose(r, &m) && !m.Cause.Planned() })
	r.Moves = slices.DeleteFunc(r.Moves, func(m doctor.Move) bool { return !choose(r, &m) })
	d := diagnosis{read, r}
	if o == "html" {
		err = doctorPage(a.Out, r, read)
	} else {
		err = show(a, o, d, doctorText)
	}
	return found(err, unplanned)
}

// diagnosis is the output: the files read, and why VIPs moved.
type diagnosis struct {
	Files []doctor.File `json:"files"`
	*doctor.Report
}
