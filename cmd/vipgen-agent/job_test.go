package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// job is one of the agent's jobs on a node.
type job struct {
	*node
	name, pod string
	conf      string        // the file that it maintains; empty if it is none
	daemon    string        // the program that it runs on conf
	names     string        // the file that names the other nodes
	protocol  time.Duration // for other hosts to object
	process   *daemon.Process
	began     time.Time // when the agent was executed
}

func (n *node) jobs() []*job {
	return []*job{
		{node: n, name: "keepalived", pod: "keepalived", conf: v1alpha1.KeepalivedConf, daemon: "keepalived", names: v1alpha1.KeepalivedConf},
		{node: n, name: "haproxy", pod: "haproxy", conf: v1alpha1.HAProxyConf, daemon: "haproxy", names: v1alpha1.HAProxyConf},
		{node: n, name: "firewall", pod: "haproxy"},
		{node: n, name: "coredns", pod: "coredns", conf: v1alpha1.Corefile, daemon: "coredns", names: v1alpha1.HostsFile},
		// RFC 6762 section 8.1: up to 250 ms at random, then three probes.
		{node: n, name: "mdns", pod: "mdns-publisher", protocol: time.Second},
	}
}

// start executes the agent with the job's command line.
func (j *job) start() {
	j.b.Helper()
	j.process = j.Start([]string{"NODE_NAME=" + nodeName(self)}, commandOf(j.b, j.pod, j.name)...)
	// Namespaces and mounts come first.
	j.await("the agent to be executed", func() bool { return command(j.pid()) == "vipgen-agent" })
	j.began = time.Now()
}

func (j *job) pid() int { return j.process.PID() }

// kill ends the agent and its daemon, and removes the file that it maintains, but not its
// recorded state.
func (j *job) kill() {
	j.b.Helper()
	j.process.Kill()
	if j.name == "firewall" {
		if out, err := j.Run(nil, "nft", "delete", "table", "inet", firewall.TableName); err != nil {
			j.b.Fatalf("%v: %s", err, out)
		}
	}
	if j.conf == "" {
		return
	}
	for _, path := range slices.Compact([]string{j.conf, j.names}) {
		testkit.Must(j.b, os.Remove(j.Path(path)))
	}
}

// up reports whether the job's file exists and names the other nodes, and its daemon has
// started.
func (j *job) up() bool {
	switch j.name {
	case "firewall":
		p, err := state.Read[state.Firewall](j.state)
		return err == nil && p != nil && p.InPlace
	case "mdns":
		p, err := state.Read[state.MDNS](j.state)
		return err == nil && p != nil && p.Announced
	}
	return j.contains(j.names, nodeAddress(controlPlane-1)) && runs(j.pid(), j.daemon, j.conf)
}

// applied returns how often the job had its daemon load a configuration.
func (j *job) applied() int { return strings.Count(j.process.Output(), "configuration applied") }
