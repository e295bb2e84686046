// Package externallb makes what a load balancer outside of a cluster runs: HAProxy
// in front of API servers, machine config servers and routers, and
// keepalived for a pair of such hosts (seeds 001 and 003).
//
// Other than the node templates these are executed offline, and nothing of them is
// on a node.
package externallb

import (
	"embed"
	"net/netip"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Proxy feeds the template of haproxy.cfg.
type Proxy struct {
	Cluster string
	// User drops root's rights after start, where the program's package has such a
	// user; empty in a container.
	User string
	// IPv4 and IPv6 say at which families to listen.
	IPv4, IPv6 bool
	// ReadyPort answers on loopback whether this host can serve.
	ReadyPort int
	Services  []Service
}

// Vital is the backend without which this host cannot serve: that of the first
// service.
func (p *Proxy) Vital() string { return p.Services[0].Default().Name }

// Service is a port that clients connect to.
type Service struct {
	Name string `json:"name"`
	Port int    `json:"port"`
	// Only holds the networks that may connect; empty means everybody.
	Only []netip.Prefix `json:"only,omitempty"`
	// Backends has the one for all other connections first.
	Backends []Backend `json:"backends"`
}

// Restricted says whether only some may connect.
func (s Service) Restricted() bool { return len(s.Only) > 0 }

// Default takes the connections that no other backend takes.
func (s Service) Default() Backend { return s.Backends[0] }

// Others take those to their own VIPs.
func (s Service) Others() []Backend { return s.Backends[1:] }

// Backend is a set of servers, each as good as the others.
type Backend struct {
	Name string `json:"name"`
	// VIPs are those whose connections it takes, unless it is the default.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Sticky sends all connections of a client to one server, while that one lives.
	Sticky  bool     `json:"sticky"`
	Check   Check    `json:"check"`
	Servers []Server `json:"servers"`
}

// Check asks a server whether it is to get connections.
type Check struct {
	// Path is asked for by HTTP, or by HTTPS if TLS is set, and must answer 200.
	Path string `json:"path"`
	TLS  bool   `json:"tls"`
	// Port is where; 0 means the port of the connections.
	Port int `json:"port,omitempty"`
}

// Server is a host of the cluster.
type Server struct {
	Name    string         `json:"name"`
	Address netip.AddrPort `json:"address"`
}

// Keepalived is what keepalived of one host of a pair is laid out from.
type Keepalived struct {
	Cluster string
	Host    string
	// ReadyURL is where this host's proxy says that it can serve.
	ReadyURL string
	// Priority is that of a host that cannot serve; Points are added if it can.
	Priority, Points int
	// Group is the name of the sync group of the instances, with their check; empty
	// where there is one alone.
	Group     string
	Instances []Instance
}

// Instance is the VRRP instance of one address family, with all VIPs of it.
type Instance struct {
	Name      string
	Interface string
	RouterID  int
	// AdvertInterval is in seconds, such as "0.04".
	AdvertInterval string
	// Source and Peer are the two hosts' own addresses.
	Source, Peer netip.Addr
	// VIPs have host prefixes.
	VIPs []netip.Prefix
}

// Unit is a systemd unit that runs one of the daemons from its image.
type Unit struct {
	Cluster string
	// Name is that of the container.
	Name  string
	Image string
	// Dir has the daemon's configuration.
	Dir string
	// Capabilities are those that the daemon needs.
	Capabilities []string
	// Reload is the signal that has it read its configuration again.
	Reload string
	// Program is run with Args, which hold nothing that systemd would expand.
	Program, Args string
}

// HAProxy makes haproxy.cfg.
func HAProxy(p *Proxy) ([]byte, error) { return parsed.Run("haproxy.cfg", p) }

// KeepalivedConf makes keepalived.conf.
func KeepalivedConf(k *Keepalived) ([]byte, error) { return parsed.Run("keepalived.conf", k) }

// Render makes the systemd unit.
func (u *Unit) Render() ([]byte, error) { return parsed.Run("container.service", u) }
