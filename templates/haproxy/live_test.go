package haproxy

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
)

// The servers are stand-ins for API servers: TLS, /readyz, and a stream.
var servers = []netip.Addr{netip.MustParseAddr("192.0.2.21"), netip.MustParseAddr("192.0.2.22"), netip.MustParseAddr("192.0.2.23")}

func cluster(peers int) (*v1alpha1.ClusterConfig, *v1alpha1.Node) {
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec.Ports = v1alpha1.DefaultPorts
	c.Spec.Groups = []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI, VIPs: []netip.Addr{netip.MustParseAddr("192.0.2.10")}}}
	n := &v1alpha1.Node{Name: "master-0", Role: v1alpha1.RoleMaster,
		Interfaces: []v1alpha1.Interface{{Name: "eth0", Addresses: []netip.Prefix{netip.PrefixFrom(servers[0], 24)}}}}
	for i := range peers {
		n.Peers = append(n.Peers, v1alpha1.Peer{Name: fmt.Sprintf("master-%d", i+1), Role: v1alpha1.RoleMaster, Addresses: servers[i+1 : i+2]})
	}
	return c, n
}

func render(t *testing.T, peers int) []byte {
	t.Helper()
	c, n := cluster(peers)
	cfg, err := Render(Template, c, n)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// apiServer serves /readyz, and anything else as a stream that echoes.
type apiServer struct {
	listener net.Listener
	ready    atomic.Bool
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

func (s *apiServer) handle(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.URL.Path == "/readyz" {
			status := "200 OK"
			if !s.ready.Load() {
				status = "500 Internal Server Error"
			}
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status)
			continue
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		io.Copy(conn, r) // a watch: open for as long as the client likes
		return
	}
}

// die ends the server as a crash does: nothing listens, connections break.
func (s *apiServer) die() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func start(t *testing.T, cfg []byte) (*daemon.LoadBalancer, []*apiServer) {
	t.Helper()
	var addresses []netip.Prefix
	for _, a := range servers {
		addresses = append(addresses, netip.PrefixFrom(a, 24))
	}
	lb := daemon.NewLoadBalancer(t, cfg, v1alpha1.HAProxySocket, addresses...)
	cert := certificate(t)
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

// ready asks HAProxy whether it can serve.
func ready(t *testing.T, lb *daemon.LoadBalancer) int {
	t.Helper()
	conn, err := lb.Dial("127.0.0.1:9444")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /haproxy_ready HTTP/1.0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// A dead API server is found by the health check, a graceful shutdown by its
// /readyz, and without any server HAProxy says that it is not ready.
func TestHealthChecks(t *testing.T) {
	lb, apis := start(t, render(t, 2))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	if got := ready(t, lb); got != http.StatusOK {
		t.Errorf("ready with three servers: %d", got)
	}
	apis[1].die()
	t.Logf("a dead API server was taken out after %v", lb.Await(t, "api-servers", up("UP", "DOWN", "UP")))
	apis[2].ready.Store(false)
	t.Logf("one that shuts down was taken out after %v", lb.Await(t, "api-servers", up("UP", "DOWN", "DOWN")))
	apis[2].ready.Store(true)
	t.Logf("it was taken back after %v", lb.Await(t, "api-servers", up("UP", "DOWN", "UP")))
	apis[0].die()
	apis[2].die()
	lb.Await(t, "api-servers", up("DOWN", "DOWN", "DOWN"))
	if got := ready(t, lb); got != http.StatusServiceUnavailable {
		t.Errorf("ready without servers: %d", got)
	}
}

// stream opens a connection through HAProxy that stays open.
func stream(lb *daemon.LoadBalancer) (net.Conn, error) {
	conn, err := lb.Dial("192.0.2.21:9445")
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

// Hard case 18: while HAProxy reloads again and again, no connection is refused
// or reset, those from before live on, and so do those of a server that shuts
// down gracefully.
func TestHardCase18Reload(t *testing.T) {
	lb, apis := start(t, render(t, 1))
	lb.Await(t, "api-servers", up("UP", "UP"))
	var open []net.Conn
	for range 200 {
		conn, err := stream(lb)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	stop, failed := make(chan struct{}), make(chan error, 1)
	var made atomic.Int64
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
					select {
					case failed <- err:
					default:
					}
					return
				}
				made.Add(1)
				conn.Close()
			}
		})
	}
	for i := range 6 {
		lb.Reload(t, render(t, 1+i%2))
		lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	}
	apis[1].ready.Store(false)
	lb.Await(t, "api-servers", up("UP", "DOWN", "UP"))
	close(stop)
	clients.Wait()
	select {
	case err := <-failed:
		t.Errorf("a connection failed during a reload: %v", err)
	default:
	}
	for i, conn := range open {
		echo := make([]byte, 4)
		conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatalf("connection %d from before the reloads: %v", i, err)
		}
		if _, err := io.ReadFull(conn, echo); err != nil {
			t.Fatalf("connection %d from before the reloads: %v", i, err)
		}
	}
	t.Logf("%d connections made during 6 reloads, %d kept", made.Load(), len(open))
}
