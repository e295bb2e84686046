package kubeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

// RealConfig configures NewReal. Node, Port, ServiceNetworks and Log are optional.
type RealConfig struct {
	// Dir is an existing directory for the programs' data and their output: etcd.log, and
	// kube-apiserver.log in a directory per server.
	Dir string
	// Etcd and APIServer are the paths of the two programs.
	Etcd, APIServer string
	// Node is etcd's node, this machine if nil, and Addr one of its addresses. A real node has
	// its own etcd; here all share one.
	Node *netns.Node
	Addr netip.Addr
	// Domain is the cluster's, such as demo.example.com.
	Domain string
	// Port is the port of API servers, 6443 if zero.
	Port uint16
	// ServiceNetworks are the networks of Services, separated by commas; empty means
	// 10.0.0.0/24.
	ServiceNetworks string
	// Log receives the names of started programs.
	Log *slog.Logger
}

// real is a Plane of the real programs.
type real struct {
	*administrator
	RealConfig
	etcd *process.Process
	url  string // of etcd
}

// NewReal starts an empty etcd. The API servers use the Node authorizer and RBAC.
func NewReal(c RealConfig) (Plane, error) {
	c.Port = cmp.Or(c.Port, port)
	c.ServiceNetworks = cmp.Or(c.ServiceNetworks, "10.0.0.0/24")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, program := range []string{c.Etcd, c.APIServer} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("the real API of a cluster needs etcd and kube-apiserver: %w", err)
		}
	}
	a, err := newAdministrator(c.Domain)
	if err != nil {
		return nil, err
	}
	p := &real{administrator: a, RealConfig: c}
	if err := p.startEtcd(); err != nil {
		return nil, err
	}
	return p, nil
}

// startEtcd starts an empty etcd. It does not sync to disk: the cluster does not outlive the
// machine.
func (p *real) startEtcd() error {
	client, peer, err := p.etcdURLs()
	if err != nil {
		return err
	}
	p.url = client
	cmd := command(p.Node, p.Etcd,
		"--data-dir", filepath.Join(p.Dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	p.etcd, err = p.start("etcd", cmd, filepath.Join(p.Dir, "etcd.log"))
	return err
}

// RefuseWrites implements Plane by the alarm that etcd raises itself.
func (p *real) RefuseWrites(_ context.Context, refuse bool) error {
	action := "DEACTIVATE"
	if refuse {
		action = "ACTIVATE"
	}
	out, err := command(p.Node, "curl", "-gsS", "-m", "10", p.url+"/v3/maintenance/alarm", "-d", `{"action":"`+action+`","alarm":"NOSPACE"}`).CombinedOutput()
	if err != nil {
		return fmt.Errorf("etcd's alarm: %w: %s", err, out)
	}
	return nil
}

// etcdURLs returns the URLs of etcd: at the usual ports on a node, and at free ones on this
// machine, which may run another.
func (p *real) etcdURLs() (client, peer string, err error) {
	ports := [2]uint16{2379, 2380}
	if p.Node == nil {
		for i := range ports {
			if ports[i], err = netns.FreePort(p.Addr); err != nil {
				return "", "", err
			}
		}
	}
	at := func(port uint16) string { return "http://" + netip.AddrPortFrom(p.Addr, port).String() }
	return at(ports[0]), at(ports[1]), nil
}

func (p *real) start(name string, cmd *exec.Cmd, log string) (*process.Process, error) {
	run, err := process.Start(name, cmd, log)
	if err == nil {
		p.Log.Info("started", "program", name, "pid", run.PID(), "output", log)
	}
	return run, err
}

// command runs on a node, or on this machine. API servers and etcd have a low priority, so that
// they do not delay daemons with deadlines, and use memory to collect garbage seldom.
func command(node *netns.Node, name string, args ...string) *exec.Cmd {
	args = append([]string{"-n", "5", "env", "GOGC=400", name}, args...)
	if node == nil {
		return exec.Command("nice", args...)
	}
	return node.Command(context.Background(), "nice", args...)
}

// Server implements Plane.
func (p *real) Server(node *netns.Node, addr netip.Addr, valid ...netip.Addr) (Server, error) {
	s := &realServer{plane: p, name: serverName(node, addr), node: node, addr: netip.AddrPortFrom(addr, p.Port)}
	s.dir = filepath.Join(p.Dir, "kube-apiserver-"+s.name)
	pairs, err := newPairs(p.ca, p.Domain, node, addr, valid)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(pairs); err != nil {
		return nil, fmt.Errorf("preparing the API server of %s: %w", s.name, err)
	}
	s.target = p.target(node, s.addr, s.usable)
	p.add(s, s.target)
	return s, nil
}

// Close implements Plane.
func (p *real) Close() error {
	defer p.etcd.Kill()
	return p.administrator.Close()
}

// accounts are the keys that sign tokens of service accounts; there are no tokens.
const accounts = "service-accounts"

// prepare writes the files that the server reads.
func (s *realServer) prepare(p pairs) error {
	signer, err := s.plane.ca.Serving(accounts)
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.write("ca.crt", s.plane.ca.CertPEM); err != nil {
		return err
	}
	for name, pair := range map[string]authority.KeyPair{
		"service": p.service, "localhost": p.localhost, "internal": p.internal, accounts: signer,
	} {
		if err := errors.Join(s.write(name+".crt", pair.Cert), s.write(name+".key", pair.Key)); err != nil {
			return err
		}
	}
	return nil
}

func (s *realServer) write(name string, data []byte) error {
	return os.WriteFile(s.in(name), data, 0o600)
}

func (s *realServer) in(name string) string { return filepath.Join(s.dir, name) }
