package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/templates/manifest"
)

// Load of TestThroughput: clients at once, the length of a run, and the size of large answers in bytes.
const (
	loadClients = 32
	loadLength  = 4 * time.Second
	loadSize    = 1 << 20
)

// load is the result of a run.
type load struct {
	requests, bytes float64 // a second
	failed          int64
	busiest         float64 // milliseconds of CPU time of the busiest node's HAProxy, for 1,000 requests
	share           float64 // that node's part of the CPU time of all nodes' HAProxy
}

func (l load) String() string {
	return fmt.Sprintf("%.0f requests/s, %.1f MB/s, %d failed, busiest HAProxy %.0f ms of CPU for 1,000 requests, %.0f %% of all",
		l.requests, l.bytes/1e6, l.failed, l.busiest, 100*l.share)
}

// TestThroughput compares the throughput through the API VIP of three nodes that announce it with that of
// one holder. Client, API servers and nodes share the cores of one machine, so requests and bytes a second
// are what its cores can do; what bounds a VIP on real machines is the work of the busiest node.
func TestThroughput(t *testing.T) {
	testkit.Measured(t)
	cfg := config(t)
	cfg.Programs.Speaker = testkit.Speaker(t)
	var err error
	cfg.Racks, err = lab.Racks()
	testkit.Must(t, err)
	shares := map[string]float64{}
	for _, p := range Profiles() {
		if p.Name != RoutedName && p.Name != "fast" {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		s, err := build(ctx, cfg, p, false)
		testkit.Must(t, err)
		testkit.Must(t, s.settled(ctx))
		testkit.Must(t, s.API.Create(ctx, "/api/v1/namespaces/openshift-ingress/configmaps",
			fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"x":%q}}`, strings.Repeat("x", loadSize))))
		for _, fresh := range []bool{true, false} {
			name, path := "new connections", "/livez"
			if !fresh {
				name, path = "1 MB answers", "/api/v1/namespaces/openshift-ingress/configmaps/large"
			}
			var runs []load
			for range 5 {
				runs = append(runs, s.load(t, path, fresh))
			}
			slices.SortFunc(runs, func(a, b load) int { return cmp.Compare(a.requests, b.requests) })
			t.Logf("%s, %s: median %v; lowest %v", p.Name, name, runs[2], runs[0])
			shares[p.Name+" "+name] = runs[2].share
		}
		testkit.Must(t, s.Close())
	}
	for name, share := range shares {
		if routed := strings.HasPrefix(name, RoutedName); routed && share > 0.7 || !routed && share < 0.7 {
			t.Errorf("%s: the busiest node has %.0f %% of the work", name, 100*share)
		}
	}
}

// load sends requests to the API VIP, each over a new connection or all of a client over one.
func (s *subject) load(t *testing.T, path string, fresh bool) (out load) {
	t.Helper()
	pair, err := s.API.CA().Client("admin", "system:masters")
	testkit.Must(t, err)
	identity, err := tls.X509KeyPair(pair.Cert, pair.Key)
	testkit.Must(t, err)
	url := "https://" + s.at(api, s.VIPs(api)[0]).String() + path
	var requests, bytes, failed atomic.Int64
	before, since := s.haproxyTime(t), time.Now()
	var all sync.WaitGroup
	for range loadClients {
		all.Go(func() {
			transport := &http.Transport{DialContext: s.Client.DialContext, DisableKeepAlives: fresh,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{identity}}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
			for time.Since(since) < loadLength {
				resp, err := client.Get(url)
				if err != nil {
					failed.Add(1)
					continue
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					failed.Add(1)
					continue
				}
				requests.Add(1)
				bytes.Add(n)
			}
		})
	}
	all.Wait()
	took := time.Since(since).Seconds()
	out = load{requests: float64(requests.Load()) / took, bytes: float64(bytes.Load()) / took, failed: failed.Load()}
	most, sum := 0.0, 0.0
	for i, after := range s.haproxyTime(t) {
		most, sum = max(most, after-before[i]), sum+after-before[i]
	}
	out.busiest, out.share = 1000*most/float64(requests.Load()), most/sum
	return out
}

// haproxyTime returns the CPU time of HAProxy on each control-plane node in milliseconds (proc(5)).
func (s *subject) haproxyTime(t *testing.T) (out []float64) {
	t.Helper()
	for _, n := range s.ControlPlane() {
		c, err := n.Running(t.Context(), manifest.HAProxy, "haproxy")
		testkit.Must(t, err)
		list, err := c.Processes()
		testkit.Must(t, err)
		ticks := 0
		for _, p := range list {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
			name, rest, _ := strings.Cut(string(stat), ") ")
			if fields := strings.Fields(rest); strings.HasSuffix(name, "(haproxy") && len(fields) > 12 {
				user, _ := strconv.Atoi(fields[11])
				system, _ := strconv.Atoi(fields[12])
				ticks += user + system
			}
		}
		out = append(out, float64(ticks)*10)
	}
	return out
}
