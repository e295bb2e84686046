package lab

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/netns"
)

// standIn stands in for a service of a cluster that is no business of these
// tests but for its answers.
type standIn struct{ servers []*httptest.Server }

// close ends the service.
func (s *standIn) close() {
	for _, server := range s.servers {
		daemon.CloseServer(server)
	}
	s.servers = nil
}

// serve adds a port of the node at all of its addresses.
func (s *standIn) serve(t *testing.T, node *netns.Node, port int, secure bool, handler http.HandlerFunc) {
	t.Helper()
	var l net.Listener
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	if secure {
		server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
		server.StartTLS()
	} else {
		server.Start()
	}
	s.servers = append(s.servers, server)
}

// serveMachineConfig stands in for the machine config server of a control-plane
// node, which is OpenShift's own.
func serveMachineConfig(t *testing.T, node *netns.Node) {
	t.Helper()
	s := &standIn{}
	t.Cleanup(s.close)
	s.serve(t, node, 22623, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// serveRouter stands in for a router, which is OpenShift's own HAProxy: its
// health, and an answer that names the node.
func serveRouter(t *testing.T, node *netns.Node) {
	t.Helper()
	s := &standIn{}
	t.Cleanup(s.close)
	s.serve(t, node, 1936, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/healthz/ready" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	answer := func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s at %s\n", r.Host, node.Name) }
	s.serve(t, node, 80, false, answer)
	s.serve(t, node, 443, true, answer)
}

// putRouter runs a router of the default ingress controller on a node: a
// stand-in for it, and its pod object.
func (c *cluster) putRouter(name string) {
	c.t.Helper()
	serveRouter(c.top, c.node(name).Node)
	c.putRouterPod("default", name)
}

// putRouterPod makes the object of a ready router pod.
func (c *cluster) putRouterPod(controller, name string) {
	c.t.Helper()
	api := c.api()
	api.Create(routerPods, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"router-%s-%s","labels":{%q:%[1]q}},
		"spec":{"nodeName":%[2]q,"hostNetwork":true,"containers":[{"name":"router","image":"router"}]}}`, controller, name, routerLabel))
	api.Patch(routerPods+"/router-"+controller+"-"+name+"/status", []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
}

// serveUpstream stands in for the name server of the site, which knows one name.
func serveUpstream(t *testing.T, node *netns.Node) {
	t.Helper()
	var packets net.PacketConn
	err := node.Do(func() (err error) {
		packets, err = net.ListenPacket("udp", upstream.String()+":53")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		switch q := query.Question[0]; {
		case !strings.EqualFold(q.Name, "www.example.org."):
			reply.Rcode = dns.RcodeNameError
		case q.Qtype == dns.TypeA:
			a, err := dns.NewRR("www.example.org. 60 IN A 203.0.113.80")
			if err == nil {
				reply.Answer = append(reply.Answer, a)
			}
		}
		w.WriteMsg(reply)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.ActivateAndServe()
	}()
	t.Cleanup(func() {
		packets.Close()
		<-ended
	})
}
