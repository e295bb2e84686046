package chaos

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	haproxy "github.com/vipgen/vipgen/templates/haproxy"
)

// Bounds are the times that the invariants allow. All but Slack follow from the
// settings of the cluster and of the agent.
type Bounds struct {
	// Advert is the longest interval of adverts in force.
	Advert time.Duration
	// Refused is how long the agent takes to notice a service that refuses, Hung
	// one that does not answer.
	Refused, Hung time.Duration
	// Backends is how long HAProxy takes to notice that no API server answers any
	// more, BackendUp that one answers again.
	Backends, BackendUp time.Duration
	// Apply is how long a change of cluster.yaml, addresses or nodes may take to be
	// in force.
	Apply time.Duration
	// Join is how long a node stays out after the cluster got to know it.
	Join time.Duration
	// Return is how long a daemon or container that ended may take to run again: the
	// longest back-off, its start, and on a node that has just come to the cluster
	// the time that it stays out.
	Return time.Duration
	// Answer is how long an agent may take to say that it goes on.
	Answer time.Duration
	// Slack is what is added to each, for a machine that has other things to do.
	Slack time.Duration
}

// What of the agent and of the lab has no setting to take it from.
const (
	// joinDelay and unknown are agent/keepalived/membership's joinTime and unknownTime.
	joinDelay = 7 * time.Second
	unknown   = 10 * time.Second
	// nodesPace is how often agent/nodes hands changes on.
	nodesPace = 3 * time.Second
	// applyPace and applyDelay are agent/daemon's: the least time between two reloads,
	// and for how long a change is put off at most while more come.
	applyPace  = 3 * time.Second
	applyDelay = time.Second
	// daemonBackOff is the longest wait of agent/supervise between two starts.
	daemonBackOff = 10 * time.Second
	// start is for the runtime to make a container and the agent in it to come to
	// its first decision: well below a second on an idle machine.
	start = 5 * time.Second
	// answer is what the pods' liveness probes give (templates/pod, timeoutSeconds).
	answer = 5 * time.Second
)

// DefaultSlack is enough on a machine that has two cores to itself.
const DefaultSlack = 300 * time.Millisecond

// backOff is that of the lab's kubelet in a run: the proportions of the real one,
// in less time.
var backOff = pod.BackOff{Initial: time.Second, Max: 8 * time.Second, Reset: 30 * time.Second}

// newBounds derives the bounds of a cluster whose longest interval of adverts is
// given.
func newBounds(spec *v1alpha1.ClusterConfigSpec, longest time.Duration, slack time.Duration) (b Bounds, err error) {
	b = Bounds{
		Advert: longest, Refused: vrrp.HAProxyProbe.Refused(), Hung: vrrp.HAProxyProbe.Hung(),
		Join: joinDelay + unknown, Answer: answer, Slack: slack,
	}
	api := func(g v1alpha1.Group) bool {
		return g.Role == v1alpha1.GroupAPI && spec.Hosts(&g, v1alpha1.RoleMaster, nil)
	}
	if !slices.ContainsFunc(spec.Groups, api) {
		return b, errors.New("this cluster's control plane has no HAProxy to check: its load balancer is not vipgen's")
	}
	b.Apply = nodesPace + applyPace + applyDelay
	b.Return = max(backOff.Max, daemonBackOff) + start + b.Apply + joinDelay
	return b, b.haproxy(haproxy.Template)
}

var (
	checkTimeout = regexp.MustCompile(`(?m)^ *timeout check (\S+)$`)
	checkPace    = regexp.MustCompile(`inter (\S+) fastinter (\S+) downinter (\S+) fall (\d+) rise (\d+)`)
)

// haproxy reads how HAProxy checks its backends from its template.
func (b *Bounds) haproxy(template string) error {
	timeout, pace := checkTimeout.FindStringSubmatch(template), checkPace.FindStringSubmatch(template)
	if timeout == nil || pace == nil {
		return errors.New("the template of haproxy.cfg does not say how backends are checked")
	}
	var d [4]time.Duration // time-out, inter, fastinter, downinter
	var fall, rise int
	for i, text := range []string{timeout[1], pace[1], pace[2], pace[3]} {
		var err error
		if d[i], err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("the template of haproxy.cfg: %w", err)
		}
	}
	if _, err := fmt.Sscan(strings.Join(pace[4:], " "), &fall, &rise); err != nil {
		return fmt.Errorf("the template of haproxy.cfg: %w", err)
	}
	b.Backends = d[1] + time.Duration(fall)*d[0] + time.Duration(fall-1)*d[2] + b.Refused
	b.BackendUp = d[3] + time.Duration(rise-1)*d[2] + d[0] + b.Refused
	return nil
}

// election is how long it takes until somebody else holds a VIP whose holder is
// silent.
func (b Bounds) election() time.Duration { return vrrp.LongestDownInterval(b.Advert) }

// silent is how long nobody may hold a VIP that somebody could hold.
func (b Bounds) silent() time.Duration { return b.election() + b.Slack }

// overlap is how long two nodes may hold a VIP: the newcomer announces itself at
// once, and again after an interval if that was lost, and the other goes when it
// hears it (RFC 9568, section 6.4.3).
func (b Bounds) overlap() time.Duration { return b.Advert + b.Slack }
