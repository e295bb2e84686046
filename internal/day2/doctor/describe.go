package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/internal/events"
)

func describe(e *events.Event) string {
	on := ""
	if e.Instance != "" {
		on = e.Instance + ": "
	}
	switch e.Kind {
	case events.AgentStarted:
		if e.Job != "" {
			return "the agent starts"
		}
		if e.First {
			return "the agent starts, the first time since the node booted"
		}
		return "the agent starts; the node has not been rebooted"
	case events.AgentStopping:
		return "the agent is to end"
	case events.AgentStopped:
		if e.Job != "" && e.Why == "" {
			return "the agent has withdrawn the VIPs, and ends"
		}
		if e.Why != "" {
			return "the agent has failed, and ends: " + e.Why
		}
		return "the agent has stopped keepalived, and ends"
	case events.KeepalivedStarting:
		return "keepalived is started"
	case events.KeepalivedDied:
		return "keepalived ended although it is wanted"
	case events.KeepalivedStopped:
		return "the agent has stopped keepalived: the node takes no part"
	case events.KeepalivedReload:
		return "keepalived reads another configuration"
	case events.State:
		return on + "state " + e.State
	case events.SilentHolder:
		return on + "no advertisement came in time"
	case events.HolderStops:
		return on + "the holder announces its stop (priority 0)"
	case events.StoppedSending:
		return on + "announces its stop (priority 0)"
	case events.HigherReceived:
		return on + fmt.Sprintf("advertisement of %v with priority %d, own %d", e.Peer, e.Priority, e.Own)
	case events.LowerReceived:
		return on + fmt.Sprintf("advertisement of %v with priority %d, which is lower", e.Peer, e.Priority)
	case events.Link:
		return "interface " + e.Interface + " is " + e.State
	case events.Held:
		return on + "the VIP is on this node"
	case events.Lost:
		return on + "the VIP is not on this node any more"
	case events.Check:
		if e.OK {
			return "check " + e.Name + " succeeds"
		}
		return "check " + e.Name + " fails: " + e.Why
	case events.Priority:
		return on + fmt.Sprintf("priority %d (%s)", e.Priority, missingTerms(e))
	case events.Effective:
		return on + fmt.Sprintf("priority %d, before %d", e.Priority, e.Own)
	case events.LeftOut:
		return "leaves VIPs out: " + strings.Join(e.Reasons, "; ")
	case events.Settings:
		return "VRRP settings " + e.Settings.String()
	case events.Migration:
		return "migration to " + e.Settings.String() + ": " + e.State
	case events.Refused:
		return "a configuration is refused: " + e.Why
	case events.Holder:
		return on + fmt.Sprintf("held by %s, priority %d", strings.TrimSpace(e.Name+" "+e.Peer.String()), e.Priority)
	case events.Strangers:
		return fmt.Sprintf("%d VRRP packets of other hosts were dropped", e.Count)
	case events.Late:
		return fmt.Sprintf("%s ran %v late", e.Name, e.For.Duration())
	case events.Announced:
		if !e.OK {
			return on + "withdrawn: " + e.Why
		}
		return on + fmt.Sprintf("announced with preference %d: %s", e.Priority, e.Why)
	case events.Session:
		return "session with router " + e.Name + " is " + e.State + reason(e.Why)
	case events.Problem:
		return "announcements" + cmp.Or(reason(e.Why), " have no problem any more")
	case events.Throttled:
		return fmt.Sprintf("the kernel throttled the container for %v", e.For.Duration())
	}
	return string(e.Kind)
}

func reason(why string) string {
	if why != "" {
		return ": " + why
	}
	return ""
}

func missingTerms(e *events.Event) string {
	var off []string
	for _, t := range e.Terms {
		if !t.On && t.Points != 0 {
			off = append(off, fmt.Sprintf("without %d of %s", t.Points, t.Name))
		}
	}
	if len(off) == 0 {
		return "all terms on"
	}
	return strings.Join(off, ", ")
}
