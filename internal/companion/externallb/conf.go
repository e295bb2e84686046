package externallb

import (
	"embed"
	"net/netip"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Proxy is the data of haproxy.cfg.
type Proxy struct {
	Cluster string
	// User is the user that HAProxy switches to after start, if the program's package
	// creates it; empty in a container.
	User string
	// IPv4 and IPv6 are the families to listen on.
	IPv4, IPv6 bool
	// ReadyPort answers on loopback whether this host can serve.
	ReadyPort int
	Services  []Service
}

// Vital returns the backend without which this host cannot serve: the one of the first
// service.
func (p *Proxy) Vital() string { return p.Services[0].Default().Name }

// Service is a port for clients.
type Service struct {
	Name string `json:"name"`
	Port int    `json:"port"`
	// Only holds the networks that may connect; empty means no restriction.
	Only []netip.Prefix `json:"only,omitempty"`
	// Backends holds the default backend first.
	Backends []Backend `json:"backends"`
}

// Restricted reports whether only some networks may connect.
func (s Service) Restricted() bool { return len(s.Only) > 0 }

// Default returns the backend of all connections that no other backend takes.
func (s Service) Default() Backend { return s.Backends[0] }

// Others returns the backends of their own VIPs.
func (s Service) Others() []Backend { return s.Backends[1:] }

// Backend is a set of equivalent servers.
type Backend struct {
	Name string `json:"name"`
	// VIPs are the VIPs whose connections it takes, unless it is the default.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Sticky sends all connections of a client to the same server while that is up.
	Sticky  bool     `json:"sticky"`
	Check   Check    `json:"check"`
	Servers []Server `json:"servers"`
}

// Check is the health check of a server.
type Check struct {
	// Path is requested by HTTP, or by HTTPS if TLS is set, and must answer 200.
	Path string `json:"path"`
	TLS  bool   `json:"tls"`
	// Port is the port of the check; 0 means the port of the connections.
	Port int `json:"port,omitempty"`
}

// Server is a host of the cluster.
type Server struct {
	Name    string         `json:"name"`
	Address netip.AddrPort `json:"address"`
}

// Keepalived is the data of keepalived.conf for one host of a pair.
type Keepalived struct {
	Cluster string
	Host    string
	// ReadyURL is the URL at which this host's proxy answers whether it can serve.
	ReadyURL string
	// Priority is the priority of a host that cannot serve; Points are added if it can.
	Priority, Points int
	// Group is the name of the sync group of the instances, with their check; empty for a
	// single instance.
	Group     string
	Instances []Instance
}

// Instance is the VRRP instance of one address family, with all of its VIPs.
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
	// Name is the name of the container.
	Name  string
	Image string
	// Dir contains the daemon's configuration.
	Dir string
	// Capabilities are the capabilities of the daemon.
	Capabilities []string
	// Reload is the signal that reloads the configuration.
	Reload string
	// Program runs with Args, which contain nothing that systemd would expand.
	Program, Args string
}
