package haproxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The servers are stand-ins for API servers: TLS, /readyz, and a stream.
var servers = testkit.Addrs("192.0.2.21", "192.0.2.22", "192.0.2.23")

// render returns the agent's configuration for the HAProxy of a generation.
func render(t *testing.T, g daemon.Generation, peers int) []byte {
	t.Helper()
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec.Ports = v1alpha1.DefaultPorts
	c.Spec.Groups = []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.10")}}
	n := &v1alpha1.Node{Name: "master-0", Role: v1alpha1.RoleMaster, HAProxy: g.HAProxy,
		Interfaces: []v1alpha1.Interface{{Name: "eth0", Addresses: []netip.Prefix{netip.PrefixFrom(servers[0], 24)}}}}
	for i := range peers {
		n.Peers = append(n.Peers, v1alpha1.Peer{Name: fmt.Sprintf("master-%d", i+1), Role: v1alpha1.RoleMaster, Addresses: servers[i+1 : i+2]})
	}
	cfg, err := Render(Template, c, n)
	testkit.Must(t, err)
	return cfg
}

// apiServer serves /readyz, and anything else as a stream that echoes.
type apiServer struct {
	listener net.Listener
	ready    atomic.Bool
	checks   atomic.Int32 // requests for /readyz
	fresh    atomic.Int32 // those that were the first over a connection
	still    sync.RWMutex // held while the server is suspended, as by SIGSTOP: the kernel continues to accept connections for it
	mu       sync.Mutex
	conns    []net.Conn
}

func serve(t *testing.T, lb *daemon.LoadBalancer, a netip.Addr, cert tls.Certificate) *apiServer {
	s := &apiServer{listener: lb.Listen(t, netip.AddrPortFrom(a, 6443).String())}
	s.ready.Store(true)
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go s.handle(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}}))
		}
	}()
	t.Cleanup(s.die)
	return s
}

// moves returns once the server is not suspended.
func (s *apiServer) moves() {
	s.still.RLock()
	defer s.still.RUnlock()
}

func (s *apiServer) handle(conn net.Conn) {
	defer conn.Close()
	s.moves()
	r := bufio.NewReader(conn)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		s.moves()
		if req.URL.Path == "/readyz" {
			s.checks.Add(1)
			if n == 0 {
				s.fresh.Add(1)
			}
			status := "200 OK"
			if !s.ready.Load() {
				status = "500 Internal Server Error"
			}
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status)
			continue
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		io.Copy(conn, r) // a watch: open for as long as the client wants
		return
	}
}

// die ends the server like a crash: nothing listens, connections break.
func (s *apiServer) die() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

func start(t *testing.T, g daemon.Generation, cfg []byte) (*daemon.LoadBalancer, []*apiServer) {
	t.Helper()
	var addresses []netip.Prefix
	for _, a := range servers {
		addresses = append(addresses, netip.PrefixFrom(a, 24))
	}
	lb := g.NewLoadBalancer(t, cfg, v1alpha1.HAProxySocket, addresses...)
	ca, err := authority.New("signer")
	testkit.Must(t, err)
	pair, err := ca.Serving("api")
	testkit.Must(t, err)
	cert, err := pair.TLS()
	testkit.Must(t, err)
	var out []*apiServer
	for _, a := range servers {
		out = append(out, serve(t, lb, a, cert))
	}
	return lb, out
}

func up(states ...string) map[string]string {
	out := map[string]string{}
	for i, s := range states {
		out[fmt.Sprintf("master-%d", i)] = s
	}
	return out
}

// ready requests one of the paths with which HAProxy reports its readiness.
func ready(t *testing.T, lb *daemon.LoadBalancer, path string) int {
	t.Helper()
	conn, err := lb.Dial("127.0.0.1:9444")
	testkit.Must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	return resp.StatusCode
}

// slowest bounds the time of a connection that HAProxy first sends to a server whose node is
// gone: 150 ms, and the delays of a busy machine.
const slowest = 400 * time.Millisecond

// A node that lost power is silent, and its server counts as up until its checks fail. New
// connections to it are soon answered by another server.
func TestSilentServer(t *testing.T) { daemon.EachGeneration(t, testSilentServer) }

func testSilentServer(t *testing.T, g daemon.Generation) {
	lb, _ := start(t, g, render(t, g, 1))
	lb.Await(t, "api-servers", up("UP", "UP"))
	// No host has the third address. Its checks are slow here, so that it counts as up. Its
	// neighbour entry exists: otherwise the kernel would give up after three seconds, with all
	// connections that wait then.
	lb.Silent(t, "192.0.2.99")
	silent := strings.Replace(string(render(t, g, 2)), "192.0.2.23:6443", "192.0.2.99:6443", 1)
	silent = strings.ReplaceAll(silent, "inter 400ms fastinter 200ms", "inter 5m fastinter 5m")
	lb.Reload(t, []byte(silent))
	watch := testkit.StartStopwatch()
	var took []time.Duration
	waited := 0
	// A third error would mark the server down. The worker from before the reload does not know
	// the server, and may accept the first connections.
	for waited < 2 && len(took) < 30 {
		began := time.Now()
		conn, err := stream(lb)
		testkit.Must(testkit.In(t, took), err)
		conn.Close()
		took = append(took, time.Since(began))
		if took[len(took)-1] >= 100*time.Millisecond {
			waited++
		}
	}
	late := watch.End()
	if got := lb.Servers(t, "api-servers")["master-2"]; !strings.HasPrefix(got, "UP") {
		t.Errorf("the silent server is %s", got)
	}
	t.Logf("connections took %v", took)
	if waited < 2 {
		t.Errorf("fewer than two of %v waited for the silent server", took)
	}
	testkit.Promise(t, "the slowest connection", slices.Max(took), slowest, 2*time.Second+10*late, late)
}

var reloads = flag.Int("reloads", 6, "how often HAProxy reloads in TestHardCase18Reload")

// Hard case 18: while HAProxy reloads repeatedly, no connection is refused or reset, existing
// ones continue, and so do those of a server that shuts down gracefully.
func TestHardCase18Reload(t *testing.T) { daemon.EachGeneration(t, testReload) }

func testReload(t *testing.T, g daemon.Generation) {
	lb, apis := start(t, g, render(t, g, 1))
	lb.Await(t, "api-servers", up("UP", "UP"))
	var open []net.Conn
	for range 200 {
		conn, err := stream(lb)
		testkit.Must(t, err)
		defer conn.Close()
		open = append(open, conn)
	}
	stop, failed := make(chan struct{}), make(chan error, 1)
	var made, lost atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := stream(lb)
				if err != nil {
					lost.Add(1)
					select {
					case failed <- err:
					default:
					}
					continue
				}
				made.Add(1)
				conn.Close()
			}
		})
	}
	for i := range *reloads {
		lb.Reload(t, render(t, g, 1+i%2))
		lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	}
	apis[1].ready.Store(false)
	lb.Await(t, "api-servers", up("UP", "DOWN", "UP"))
	close(stop)
	clients.Wait()
	select {
	case err := <-failed:
		t.Errorf("%d of %d connections failed during %d reloads, one of them: %v", lost.Load(), lost.Load()+made.Load(), *reloads, err)
	default:
	}
	for i, conn := range open {
		testkit.Must(testkit.In(t, i), echo(conn))
	}
	t.Logf("%d connections made during %d reloads, %d kept", made.Load(), *reloads, len(open))
}

// Hard case 18: a worker started by a reload marks a server down by its first failed check. If
// those of all servers fail, as on a node that is too busy to answer in time, clients still
// reach an API server, and HAProxy reports that it is not ready.
func TestHardCase18FirstChecksFail(t *testing.T) { daemon.EachGeneration(t, testFirstChecksFail) }

func testFirstChecksFail(t *testing.T, g daemon.Generation) {
	lb, apis := start(t, g, render(t, g, 2))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	for _, s := range apis {
		s.ready.Store(false)
	}
	// Nothing listens on port 9, so that the checks of the backend listening fail, too.
	late := bytes.ReplaceAll(render(t, g, 2), []byte("check inter 400ms fastinter 200ms fall 2 rise 1"), []byte("check port 9 inter 400ms fastinter 200ms fall 2 rise 1"))
	lb.Reload(t, late)
	lb.Await(t, "api-servers", up("DOWN", "DOWN", "DOWN"))
	lb.Await(t, "listening", up("DOWN", "DOWN", "DOWN"))
	answers(t, lb, 2*len(apis))
	apis[0].die()
	answers(t, lb, len(apis))
	testkit.Equal(t, http.StatusServiceUnavailable, ready(t, lb, "/haproxy_ready"))
}

// frozenFor is how long all API servers are suspended in the test of hard case 45.
const frozenFor = 10 * time.Second

// Hard case 45: while all API servers are suspended for 10 seconds, or none is ready, no client
// has an alternative: HAProxy reports all the time that it is ready, accepts connections, and
// requests of this time are answered afterwards. A server that dies or shuts down is marked down
// as soon as usual, and without any HAProxy reports that it is not ready.
func TestHardCase45AllUnready(t *testing.T) { daemon.EachGeneration(t, testAllUnready) }

func testAllUnready(t *testing.T, g daemon.Generation) {
	lb, apis := start(t, g, render(t, g, 2))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	lb.Await(t, "listening", up("UP", "UP", "UP"))
	testkit.Await(t, "ten checks", func() bool { return apis[0].checks.Load() >= 10 }, func() string { return fmt.Sprint(apis[0].checks.Load()) })
	if fresh, checks := apis[0].fresh.Load(), apis[0].checks.Load(); 2*fresh > checks {
		t.Errorf("%d of %d checks took a new connection", fresh, checks)
	}
	kept, err := stream(lb)
	testkit.Must(t, err)
	defer kept.Close()

	began := time.Now()
	for _, s := range apis {
		s.still.Lock()
	}
	lb.Await(t, "api-servers", up("DOWN", "DOWN", "DOWN"))
	answer := make(chan error, 1)
	go func() {
		c, err := stream(lb)
		if err == nil {
			c.Close()
		}
		answer <- err
	}()
	for time.Since(began) < frozenFor {
		testkit.Equal(testkit.In(t, time.Since(began)), http.StatusOK, ready(t, lb, "/haproxy_ready"))
		if got := ready(t, lb, "/api_servers_ready"); got == http.StatusOK && time.Since(began) < frozenFor/2 {
			t.Errorf("after %v without a ready API server: /api_servers_ready: %d", time.Since(began), got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, s := range apis {
		s.still.Unlock()
	}
	testkit.Check(t, <-answer)
	testkit.Check(t, echo(kept))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))

	for _, s := range apis {
		s.ready.Store(false)
	}
	lb.Await(t, "api-servers", up("DOWN", "DOWN", "DOWN"))
	answers(t, lb, 1)
	for _, s := range apis {
		s.ready.Store(true)
	}
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	testkit.Equal(t, http.StatusOK, ready(t, lb, "/api_servers_ready"))
	apis[1].die()
	t.Logf("one that died was taken out after %v", lb.Await(t, "api-servers", up("UP", "DOWN", "UP")))
	apis[2].ready.Store(false)
	t.Logf("one that shuts down was taken out after %v", lb.Await(t, "api-servers", up("UP", "DOWN", "DOWN")))
	apis[0].die()
	apis[2].die()
	lb.Await(t, "api-servers", up("DOWN", "DOWN", "DOWN"))
	lb.Await(t, "listening", up("DOWN", "DOWN", "DOWN"))
	testkit.Equal(t, http.StatusServiceUnavailable, ready(t, lb, "/haproxy_ready"))
}

// HAProxy serves as many connections at once as configured, in every generation. Where the
// limit of open files allows fewer it starts anyway.
func TestConnections(t *testing.T) { daemon.EachGeneration(t, testConnections) }

func testConnections(t *testing.T, g daemon.Generation) {
	testkit.Live(t)
	lb, _ := start(t, g, render(t, g, 2))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	testkit.Equal(t, MaxConn, lb.Info(t, "Maxconn"))
	var held []net.Conn
	for i := range manyConnections { // to all addresses of the node: the ports of one would not suffice
		conn, err := streamTo(lb, servers[i%len(servers)])
		testkit.Must(testkit.In(t, i), err)
		defer conn.Close()
		held = append(held, conn)
	}
	if got := lb.Info(t, "CurrConns"); got < manyConnections {
		t.Errorf("HAProxy has %d connections, want %d", got, manyConnections)
	}
	for i, conn := range held {
		testkit.Must(testkit.In(t, i), echo(conn))
	}
}

// manyConnections exceeds the default of 2,000 connections of HAProxy's front ends. Each needs
// two files of HAProxy and two of this test, which limits how many of three generations a
// machine with a low limit of files can hold at once.
const manyConnections = 2500

// answers opens connections through HAProxy, one after the other, each of which is to be answered.
func answers(t *testing.T, lb *daemon.LoadBalancer, connections int) {
	t.Helper()
	for i := range connections {
		conn, err := stream(lb)
		testkit.Must(testkit.In(t, i), err)
		conn.Close()
	}
}

// stream opens a connection through HAProxy that stays open.
func stream(lb *daemon.LoadBalancer) (net.Conn, error) { return streamTo(lb, servers[0]) }

// streamTo is stream to an address of the node.
func streamTo(lb *daemon.LoadBalancer, a netip.Addr) (net.Conn, error) {
	conn, err := lb.Dial(netip.AddrPortFrom(a, uint16(v1alpha1.DefaultPorts.HAProxy)).String())
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	secure.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprint(secure, "GET /watch HTTP/1.1\r\nHost: api\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	return secure, nil
}

// echo returns an error unless bytes come back over a stream.
func echo(conn net.Conn) error {
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write([]byte("ping")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 4))
	return err
}
