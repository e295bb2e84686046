package firstboot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// Addresses of the site.
const (
	siteAddr     = "192.168.111.1"
	registryAddr = "192.168.111.2"
	nodeAddr     = "192.168.111.20"
)

const (
	registryName = "registry.site.example"
	registryHost = registryName + ":5000"
	agentImage   = registryHost + "/vipgen/vipgen-agent"
)

// site is the network of a node, with the services that precede it: a name server and a DHCP
// server on one host, a registry on another.
type site struct {
	t              *testing.T
	dir            string
	network        *netns.Network
	host, registry *netns.Node
	ca             *authority.Authority
	serving        *process.Process // the registry; nil while it is down
	dhcp           *process.Process
	agent          string // vipgen's image, by digest
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), network: daemon.NewNetwork(t)}
	s.host = daemon.AddNode(t, s.network, "site", siteAddr+"/24", "fd2e:6f44:5dd8::1/64")
	s.registry = daemon.AddNode(t, s.network, "registry", registryAddr+"/24")
	s.startNames()
	s.fillRegistry()
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	testkit.Must(s.t, err)
}

// write puts a file into the site's directory and returns its path.
func (s *site) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	s.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// start starts a program on a host of the site until the test ends.
func (s *site) start(on *netns.Node, program string, args ...string) *process.Process {
	s.t.Helper()
	name := filepath.Base(program)
	log := filepath.Join(s.dir, name+".log")
	p, err := process.Start(name, on.Command(context.Background(), program, args...), log)
	s.must(err)
	s.t.Cleanup(func() {
		p.Kill()
		if s.t.Failed() {
			s.t.Logf("the end of the output of %s:\n%s", name, tail(p.Output()))
		}
	})
	return p
}

// tail returns the end of a long text.
func tail(text string) string { return text[max(0, len(text)-8000):] }

// startNames starts CoreDNS with the names of the site, the registry's among them, and
// those of the node's addresses. They resolve nowhere else.
func (s *site) startNames() {
	s.t.Helper()
	hosts := s.write("hosts", registryAddr+" "+registryName+"\n"+
		nodeAddr+" master-0.site.example\n192.168.111.21 master-0.site.example\nfd2e:6f44:5dd8::20 master-0.site.example\n")
	p := s.start(s.host, rig.Tool(s.t, "coredns"), "-conf", s.write("Corefile", ".:53 {\n\thosts "+hosts+"\n\tlog\n}\n"))
	testkit.Await(s.t, "CoreDNS to listen", func() bool {
		conn, err := s.host.DialContext(s.t.Context(), "tcp", siteAddr+":53")
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, p.Output)
}

// lease is the lease of the DHCP server for the node.
type lease struct {
	addr    string
	servers string // name servers, separated by commas
	domains string // to search, separated by commas
	ipv6    bool   // it advertises a network, and gives an address of it
}

// firstLease is the node's default lease.
var firstLease = lease{addr: nodeAddr, servers: siteAddr, domains: "site.example"}

// startDHCP starts dnsmasq, in place of the running one: the node gets another lease at its
// next request.
func (s *site) startDHCP(l lease) {
	s.t.Helper()
	if s.dhcp != nil {
		s.dhcp.Kill()
	}
	first, _, _ := strings.Cut(l.domains, ",")
	args := []string{
		"--conf-file=/dev/null", "--keep-in-foreground", "--log-facility=-", "--log-dhcp", "--pid-file", "--leasefile-ro",
		"--port=0", "--interface=eth0", "--bind-interfaces", "--dhcp-authoritative", "--no-ping",
		"--dhcp-range=" + l.addr + "," + l.addr + ",255.255.255.0,1h",
		"--dhcp-option=option:router," + siteAddr, "--dhcp-option=option:dns-server," + l.servers,
		"--dhcp-option=option:domain-name," + first, "--dhcp-option=option:domain-search," + l.domains,
	}
	if l.ipv6 {
		args = append(args, "--enable-ra", "--dhcp-range=fd2e:6f44:5dd8::20,fd2e:6f44:5dd8::20,64,1h")
	}
	s.dhcp = s.start(s.host, "dnsmasq", args...)
}

// built is vipgen's image of this checkout, in an archive in dir.
var built = sync.OnceValues(func() (built struct{ dir, pinned string }, err error) {
	if built.dir, err = os.MkdirTemp("", "vipgen-firstboot-"); err != nil {
		return built, err
	}
	source := image.Source{Dir: "../../..", Version: "devel"}
	i, err := image.Vipgen(context.Background(), source, agentImage+":v1", []v1.Platform{image.Here()}, rig.Made, filepath.Join(built.dir, "work"))
	if err == nil {
		built.pinned, err = i.Write(built.dir)
	}
	return built, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, _ := built(); b.dir != "" {
		os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// fillRegistry makes a stopped registry with vipgen's image in it.
func (s *site) fillRegistry() {
	s.t.Helper()
	var err error
	s.ca, err = authority.New("site")
	s.must(err)
	pair, err := s.ca.Serving(registryName, registryAddr)
	s.must(err)
	s.write("registry.yml", fmt.Sprintf(`version: 0.1
log: {level: warn, accesslog: {disabled: false}}
storage: {filesystem: {rootdirectory: %[1]s/registry}}
http: {addr: ":5000", tls: {certificate: %[2]s, key: %[3]s}}
`, s.dir, s.write("registry.crt", string(pair.Cert)), s.write("registry.key", string(pair.Key))))
	b, err := built()
	s.must(err)
	s.agent = b.pinned
	s.startRegistry()
	certs := filepath.Join(s.dir, "certs")
	s.must(os.Mkdir(certs, 0o755))
	s.write("certs/ca.crt", string(s.ca.CertPEM))
	push := s.registry.Command(s.t.Context(), "skopeo", "--insecure-policy", "copy", "--all", "--preserve-digests", "--dest-cert-dir", certs,
		"oci-archive:"+filepath.Join(b.dir, "vipgen-agent.oci.tar"), "docker://"+strings.Replace(agentImage, registryName, registryAddr, 1)+":v1")
	testkit.Run(s.t, push)
	s.stopRegistry()
}

// startRegistry returns when the registry serves.
func (s *site) startRegistry() {
	s.t.Helper()
	if _, err := exec.LookPath("docker-registry"); err != nil {
		s.t.Fatalf("%v: run `make e2e-setup`", err)
	}
	s.serving = s.start(s.registry, "docker-registry", "serve", filepath.Join(s.dir, "registry.yml"))
	testkit.Await(s.t, "the registry to serve", func() bool {
		conn, err := s.registry.DialContext(s.t.Context(), "tcp", registryAddr+":5000")
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, s.serving.Output)
}

func (s *site) stopRegistry() { s.serving.Kill() }
