package explain

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

// Failure is a failure or an orderly stop, as clients of the VIP see it.
type Failure struct {
	What string `json:"what"`
	// Brief is Seen in a few words.
	Brief string `json:"brief"`
	Seen  string `json:"seen"`
	// WithoutHolderMS is how long the VIP is without a holder, and WithoutAnswerMS how long new
	// connections are without an answer from a holder that does not serve: at most, in
	// milliseconds. One of them, or neither without a bound.
	WithoutHolderMS int `json:"withoutHolderMS,omitempty"`
	WithoutAnswerMS int `json:"withoutAnswerMS,omitempty"`
}

type failures struct {
	Timing
	cluster *render.Cluster
	setup   *verify.Setup
}

func (f *failures) list() ([]Failure, error) {
	role := f.setup.Group.Role
	switch {
	case f.setup.Stage == verify.StageInstallation && role == v1alpha1.GroupIngress:
		return []Failure{}, nil
	case f.setup.Stage == verify.StageInstallation:
		return f.installation(), nil
	case len(f.setup.Nodes) < 2:
		return []Failure{{What: "The node is away", Brief: "time out until it is back", Seen: "Connections time out until it is back: there is no other node."}}, nil
	case role == v1alpha1.GroupIngress:
		return append(f.anyHolder(), f.ingress()...), nil
	case role == v1alpha1.GroupDNS:
		return append(f.anyHolder(), f.dns()...), nil
	}
	api, err := f.api()
	return append(f.anyHolder(), api...), err
}

// after adds a time to notice and a time to take over.
func after(noticed time.Duration, takeOverMS int) int {
	return int(noticed/time.Millisecond) + takeOverMS
}

func (f *failures) installation() []Failure {
	if !slices.ContainsFunc(f.setup.Nodes, func(n verify.Node) bool { return n.Facts.Role == v1alpha1.RoleBootstrap }) {
		return []Failure{}
	}
	end := Failure{
		What:  "The bootstrap has finished: its API server has ended, and its provisioning service if it had one",
		Brief: "lost; new ones fail", Seen: "Connections to its API server are lost. New ones fail until its keepalived announces its stop; the control plane serves them then.",
	}
	noticed := verify.OpenShiftsGone
	if f.cluster.OwnsBootstrap() {
		noticed = vrrp.ServiceProbe.Refused() + vrrp.BootstrapGoneAfter
	}
	end.WithoutAnswerMS = after(noticed, f.GoodbyeMS)
	return []Failure{end, {
		What: "The bootstrap host loses power", Brief: "lost; new ones wait", WithoutHolderMS: f.DeadMS,
		Seen: "Connections to it are lost. New ones wait until a control-plane node has taken the VIP, and fail there while no API server runs.",
	}}
}

func (f *failures) anyHolder() []Failure {
	return []Failure{
		{"The holder loses power, or the network", "lost; new ones wait", "Connections through it are lost. New ones wait until another node has taken the VIP.", f.DeadMS, 0},
		// Hard case 38, TestHardCase38AfterTheEnd.
		{"keepalived is killed on the holder", "lost; new ones wait", "The agent removes the VIP from the interface at once. Connections through it are lost. New ones wait until another node has taken the VIP.", f.DeadMS, 0},
		// Its daemon ends with it (hard case 24).
		{"The agent of keepalived is killed on the holder", "lost; new ones wait", "keepalived ends with it. The address stays until another node has taken the VIP, or kubelet has started the agent again; connections through the old holder break then.", f.DeadMS, 0},
		{"The holder stalls, as a paused virtual machine", "wait", fmt.Sprintf("Connections through it wait. For up to %v the VIP stays; after that another node takes it, connections through the holder break, and it gives up the VIP when it resumes.", v1alpha1.Millis(f.StallMS)), 0, 0},
		{"The holder shuts down properly", "lost when it ends; new ones move at once", "New connections go to the next holder, which this one has notified. Those through it are lost when it ends.", f.GoodbyeMS, 0},
		{"Every node that can hold the VIP is away", "time out until one is back", "No node holds the VIP: connections time out.", 0, 0},
	}
}

func (f *failures) api() ([]Failure, error) {
	lb, err := f.loadBalancer()
	if err != nil {
		return nil, err
	}
	out := []Failure{
		{"HAProxy crashes on the holder", "lost; new ones are served", "Connections through it are lost. New ones go to the holder's own API server until HAProxy serves again. The VIP moves if that takes more than a second, or if HAProxy crashes again within 10 seconds.", 0, 0},
		{"HAProxy hangs on the holder", "hang; new ones wait", "Connections through it hang. New ones wait until the redirect is withdrawn or the VIP has moved.", 0, after(vrrp.HAProxyProbe.Hung(), f.BetterMS)},
		{"The redirect to HAProxy is flushed on the holder", "nothing", "New connections go to the holder's own API server until the agent has put the redirect back.", 0, 0},
		{"An API server restarts or ends, on any node", "lost to that server; others stay", fmt.Sprintf("Connections to it are lost, all others stay. HAProxy retries it elsewhere within %v, and leaves the server out after %v; the VIP stays.", lb.connect, lb.out), 0, 0},
	}
	if s := &f.cluster.Config.Spec; s.LocalAPI(v1alpha1.RoleMaster) {
		where := "a control-plane node"
		if s.LocalAPI(v1alpha1.RoleWorker) {
			where = "any node"
		}
		out = append(out, Failure{What: "The VIP is away, for programs on " + where,
			Brief: "nothing", Seen: "Nothing: their connections go to the node's own HAProxy. Only while that finds no API server ready do new ones go to the VIP."})
	}
	if f.setup.Group.AdditionalAPI() {
		return append(out, Failure{"Every API server is away", "refused until one is back", "Connections are closed or refused. The VIP stays; the first API server that is back is served from there.", 0, 0}), nil
	}
	return append(out,
		Failure{"The machine config server ends on the holder", "refused to hosts that join", fmt.Sprintf("Port %d refuses connections until the VIP is on a node that has one.", f.cluster.Config.Spec.Ports.MachineConfig), 0, after(vrrp.ServiceProbe.Refused(), f.BetterMS)},
		Failure{"Every API server is away", "refused until one is back", "Connections are closed or refused. The VIP goes where a machine config server runs, else stays; the first API server that is back is served from there.", 0, 0},
	), nil
}

func (f *failures) ingress() []Failure {
	out := []Failure{
		{"The router dies on the holder", "lost; new ones are refused", "Connections through it are lost. New ones are refused until another node with a router has the VIP.", 0, after(vrrp.ServiceProbe.Refused(), f.GoodbyeMS)},
		{"The router hangs on the holder", "hang", "Connections hang until another node with a router has the VIP.", 0, after(vrrp.ServiceProbe.Hung(), f.GoodbyeMS)},
		{"The router on the holder shuts down gracefully", "nothing", "It stops being ready first and still serves while the VIP moves to a node with a ready one: new connections fail nowhere.", 0, 0},
		{"No router answers on any node", "time out until one answers", "No node holds the VIP: connections time out.", 0, 0},
		{"The API is away", "nothing", "Nothing. Nodes keep the last known controller of each router.", 0, 0},
	}
	if f.setup.Several {
		out = append(out, Failure{What: "A router of another ingress controller takes the place of this one's on the holder",
			Brief: "time out until a router has the VIP", Seen: "As soon as the API has its pod there and none of this controller's, the node cannot hold the VIP. It goes to a node with a router of this controller; while there is none, no node holds it and connections time out, instead of reaching a router that does not know the routes."})
	}
	return out
}

func (f *failures) dns() []Failure {
	return []Failure{
		{"CoreDNS dies on the holder", "no answer; clients ask again", "Questions get no answer until the VIP is on a node where CoreDNS answers; clients ask again.", 0, after(vrrp.ServiceProbe.Refused(), f.BetterMS)},
		{"CoreDNS hangs on the holder", "no answer; clients ask again", "Questions get no answer until the VIP is on a node where CoreDNS answers; clients ask again.", 0, after(vrrp.ServiceProbe.Hung(), f.BetterMS)},
	}
}

// loadBalancer holds HAProxy's settings for an unreachable API server.
type loadBalancer struct {
	// connect bounds one attempt to connect, out the time until no more are made.
	connect, out time.Duration
}

var (
	serverChecks = lazy.Regexp(`(?m)^ *default-server .*\binter (\S+) fastinter (\S+) .*\bfall (\d+)`)
	connectLimit = lazy.Regexp(`(?m)^ *timeout connect (\S+)`)
)

// loadBalancer reads them from the haproxy.cfg of a control-plane node.
func (f *failures) loadBalancer() (lb loadBalancer, err error) {
	i := slices.IndexFunc(f.setup.Nodes, func(n verify.Node) bool { return len(n.Conf) > 0 && n.Facts.Role != v1alpha1.RoleBootstrap })
	files, err := render.Preview(f.cluster.Config, f.setup.Nodes[i].Facts)
	if err != nil {
		return lb, err
	}
	for _, file := range files {
		if file.Path != v1alpha1.HAProxyConf {
			continue
		}
		checks, limit := serverChecks().FindSubmatch(file.Data), connectLimit().FindSubmatch(file.Data)
		if checks == nil || limit == nil {
			break
		}
		return readLoadBalancer(string(limit[1]), string(checks[1]), string(checks[2]), string(checks[3]))
	}
	return lb, fmt.Errorf("haproxy.cfg of %s does not say how API servers are checked", f.setup.Nodes[i].Facts.Name)
}

// readLoadBalancer parses a connect time-out, two intervals of checks and how many of them must
// fail: the first waits for the long interval, the others for the short one.
func readLoadBalancer(connect, interval, fast, fall string) (lb loadBalancer, err error) {
	if lb.connect, err = time.ParseDuration(connect); err != nil {
		return lb, err
	}
	first, err := time.ParseDuration(interval)
	if err != nil {
		return lb, err
	}
	next, err := time.ParseDuration(fast)
	if err != nil {
		return lb, err
	}
	n, err := strconv.Atoi(fall)
	lb.out = first + time.Duration(n-1)*next
	return lb, err
}
