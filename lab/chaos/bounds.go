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

// Bounds are the times that the rules allow. All but Slack follow from the settings of the cluster
// and of the agent.
type Bounds struct {
	// Advert is the longest advertisement interval in effect.
	Advert time.Duration
	// Refused is the time in which the agent detects a service that refuses connections, Hung one
	// that does not answer.
	Refused, Hung time.Duration
	// Backends is the time in which HAProxy detects that no API server answers, BackendUp that one
	// answers again.
	Backends, BackendUp time.Duration
	// Apply is the time in which a change of cluster.yaml, addresses or nodes takes effect.
	Apply time.Duration
	// Join is the time that a node takes no part in elections after it joined the cluster.
	Join time.Duration
	// Return is the time in which a daemon or container that ended runs again: the longest
	// back-off, its start, and, on a node that has just joined, the join delay.
	Return time.Duration
	// Answer is the time in which an agent must answer its liveness probe.
	Answer time.Duration
	// Detect is the time in which BFD finds that a neighbor is dead, Session the time in which a BGP
	// session opens again, Hold its hold time; 0 without VIPs by BGP.
	Detect, Session, Hold time.Duration
	// Slack is added to each bound, for a machine that is busy.
	Slack time.Duration
}

// Times of the agent and the lab that are no settings.
const (
	// joinDelay and unknown are agent/keepalived/membership's joinTime and unknownTime.
	joinDelay = 7 * time.Second
	unknown   = 10 * time.Second
	// nodesPace is the interval in which agent/nodes publishes changes.
	nodesPace = 3 * time.Second
	// applyPace and applyDelay are agent/daemon's: the minimum time between two reloads, and the
	// maximum delay of a change while further ones arrive.
	applyPace  = 3 * time.Second
	applyDelay = time.Second
	// daemonBackOff is agent/supervise's longest delay between two starts.
	daemonBackOff = 10 * time.Second
	// start is the time for the runtime to create a container and for the agent in it to decide for
	// the first time: well below a second on an idle machine.
	start = 5 * time.Second
	// session is the time for a node and a router to open a session again, and BFD: two attempts
	// (agent/bgp/speaker's retryAfter), one of which the router may refuse.
	session = 5 * time.Second
	// answer is the timeout of the pods' liveness probes (templates/manifest, timeoutSeconds).
	answer = 5 * time.Second
)

// DefaultSlack is enough on a machine that has two cores for the lab alone.
const DefaultSlack = 300 * time.Millisecond

// backOff is the back-off of the lab's kubelet: the proportions of the real one, in less time.
var backOff = pod.BackOff{Initial: time.Second, Max: 8 * time.Second, Reset: 30 * time.Second}

// newBounds derives the bounds from a cluster and its longest advertisement interval.
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
	if spec.Routed() {
		b.Session = session
		for _, p := range spec.BGP.Peers {
			b.Hold = max(b.Hold, time.Duration(p.HoldTime))
			if p.BFD.On() {
				b.Detect = max(b.Detect, time.Duration(p.BFD.Interval)*time.Duration(p.BFD.Multiplier))
			}
		}
	}
	b.Apply = nodesPace + applyPace + applyDelay
	b.Return = max(backOff.Max, daemonBackOff) + start + b.Apply + joinDelay
	return b, b.haproxy(haproxy.Template)
}

var (
	checkTimeout = regexp.MustCompile(`(?m)^ *timeout check (\S+)$`)
	checkPace    = regexp.MustCompile(`inter (\S+) fastinter (\S+) downinter (\S+) fall (\d+) rise (\d+)`)
)

// haproxy reads the settings of HAProxy's health checks from its template.
func (b *Bounds) haproxy(template string) error {
	timeout, pace := checkTimeout.FindStringSubmatch(template), checkPace.FindStringSubmatch(template)
	if timeout == nil || pace == nil {
		return errors.New("the template of haproxy.cfg has no health checks")
	}
	var d [4]time.Duration // timeout, inter, fastinter, downinter
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

// election returns the time until another node holds a VIP whose holder is silent, or until routers
// send packets to a node that can serve.
func (b Bounds) election() time.Duration {
	if b.Session > 0 {
		return b.Session
	}
	return vrrp.LongestDownInterval(b.Advert)
}

// silent returns the longest time without a holder while a node could hold the VIP, or without an
// answer while one serves.
func (b Bounds) silent() time.Duration {
	if b.Session > 0 {
		return b.Detect + askTimeout + b.Slack
	}
	return b.election() + b.Slack
}

// overlap returns the longest time in which two nodes hold a VIP: the new holder announces itself at
// once, and
// again after an interval if that was lost, and the other releases the VIP when it receives that
// (RFC 9568, section 6.4.3).
func (b Bounds) overlap() time.Duration { return b.Advert + b.Slack }
