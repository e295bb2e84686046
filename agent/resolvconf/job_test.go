package resolvconf

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// sandbox is a host's file system and a job that works on it.
type sandbox struct {
	Job
	t       *testing.T
	reloads int
	fail    error
	changes int // reported to NetworkManager
	logged  testkit.Log
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t: t}
	s.Job = Job{
		Spec: &v1alpha1.ClusterConfigSpec{Domain: "demo.example.com"},
		Root: t.TempDir(), Log: slog.New(slog.NewTextHandler(&s.logged, nil)),
		Address: netip.MustParseAddr("192.0.2.10"), Own: testkit.Addrs("192.0.2.10", "2001:db8::10"), VIPs: testkit.Addrs("192.0.2.5"),
		Reload:  func(context.Context, string) error { s.reloads++; return s.fail },
		Changed: func(context.Context, string) error { s.changes++; return s.fail },
	}
	for _, dir := range []string{"/etc", "/run/NetworkManager", "/run/resolv-prepender"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(s.Root, dir), 0o755))
	}
	return s
}

func (s *sandbox) put(path, data string) {
	s.t.Helper()
	testkit.WriteFile(s.t, filepath.Join(s.Root, path), []byte(data))
}

// get returns a file's content, "-" for none.
func (s *sandbox) get(path string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Root, path))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	testkit.Must(s.t, err)
	return string(data)
}

func (s *sandbox) link(target string) {
	s.t.Helper()
	testkit.Must(s.t, os.Symlink(target, filepath.Join(s.Root, resolvConf)))
}

func (s *sandbox) run() error {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return s.Run(ctx)
}

// nameservers returns those of /etc/resolv.conf, separated by spaces.
func (s *sandbox) nameservers() string {
	var out []string
	for _, a := range Parse([]byte(s.get(resolvConf))).Nameservers {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
}

func TestHardCase16ResolvConf(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"upstreams", "nameserver 192.0.2.53\nnameserver 192.0.2.54\nnameserver 192.0.2.55\n", "192.0.2.10 192.0.2.53 192.0.2.54"},
		{"the node itself, loopback, a VIP", "nameserver 192.0.2.10\nnameserver 127.0.0.1\nnameserver 192.0.2.5\nnameserver 2001:db8::10\nnameserver 192.0.2.53\n", "192.0.2.10 192.0.2.53"},
		{"nothing but itself", "nameserver 192.0.2.10\n", "192.0.2.10"},
		{"more than fifteen", strings.Repeat("nameserver 192.0.2.53\n", 3) + many(20), "192.0.2.10 192.0.2.53 198.51.100.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSandbox(t)
			s.put(Source, tt.source)
			testkit.Must(t, s.run())
			testkit.Equal(t, tt.want, s.nameservers())
			if s.get(doneFile) != "" || s.reloads != 0 {
				t.Errorf("done %q, reloads %d; want done and none", s.get(doneFile), s.reloads)
			}
		})
	}
}

func many(n int) string {
	var b strings.Builder
	addr := netip.MustParseAddr("198.51.100.0")
	for range n {
		addr = addr.Next()
		b.WriteString("nameserver " + addr.String() + "\n")
	}
	return b.String()
}

func TestSecondRunChangesNothing(t *testing.T) {
	s := newSandbox(t)
	s.put(Source, "nameserver 192.0.2.53\n")
	s.link("/run/NetworkManager/resolv.conf") // an old link of NetworkManager
	testkit.Must(t, s.run())
	before, err := os.Lstat(filepath.Join(s.Root, resolvConf))
	if err != nil || !before.Mode().IsRegular() || before.Mode().Perm() != 0o644 {
		t.Fatalf("resolv.conf is %v, %v", before, err)
	}
	lines := strings.Count(s.logged.String(), "\n")
	testkit.Must(t, s.run())
	if after, err := os.Lstat(filepath.Join(s.Root, resolvConf)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same again replaced the file (%v)", err)
	}
	if got := strings.Count(s.logged.String(), "\n"); got != lines || s.changes != 1 {
		t.Errorf("reported %d changes to NetworkManager, want 1; logged:\n%s", s.changes, s.logged.String())
	}
}

// Without NetworkManager or D-Bus, resolv.conf is written anyway.
func TestNetworkManagerDoesNotAnswer(t *testing.T) {
	s := newSandbox(t)
	s.put(Source, "nameserver 192.0.2.53\n")
	s.fail = errors.New("no D-Bus")
	if err := s.run(); err != nil || s.get(doneFile) != "" || !strings.Contains(s.logged.String(), "no D-Bus") {
		t.Errorf("%v; done %q; logged:\n%s", err, s.get(doneFile), s.logged.String())
	}
}

// TestDHCPDomains covers the files of OpenShift's dispatcher script (operator contract,
// /run/resolv-prepender/env), and others.
func TestDHCPDomains(t *testing.T) {
	for _, tt := range []struct{ name, env, want string }{
		{"no file", "", "demo.example.com lan.example"},
		{"of both families", "IP4_DOMAINS=a.example b.example\nIP6_DOMAINS=c.example\n", "demo.example.com lan.example a.example b.example c.example"},
		{"IPv4 first, in any order", "IP6_DOMAINS=c.example\nIP4_DOMAINS=a.example\n", "demo.example.com lan.example a.example c.example"},
		{"none, and others", "DHCP6_FQDN_FQDN=x.example\nIP4_DOMAINS=\nIP6_DOMAINS=\n", "demo.example.com lan.example"},
		{"quoted, known already", "IP4_DOMAINS=\"LAN.example a.example\"\n", "demo.example.com lan.example a.example"},
		{"hostile", "IP4_DOMAINS=a.example\rnameserver $(id) ;x\n", "demo.example.com lan.example a.example nameserver"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSandbox(t)
			s.put(Source, "search lan.example\nnameserver 192.0.2.53\n")
			if tt.env != "" {
				s.put(environment, tt.env)
			}
			testkit.Must(t, s.run())
			testkit.Equal(t, tt.want, strings.Join(Parse([]byte(s.get(resolvConf))).Search, " "))
			testkit.Must(t, os.Remove(filepath.Join(s.Root, resolvConf)))
			s.link("/run/systemd/resolve/stub-resolv.conf")
			testkit.Must(t, s.run())
			want := "\nDomains=" + strings.ReplaceAll(tt.want, " lan.example", "") + "\n"
			if tt.name == "quoted, known already" {
				want = "\nDomains=demo.example.com LAN.example a.example\n"
			}
			if !strings.HasSuffix(s.get(dropIn), want) {
				t.Errorf("the drop-in of systemd-resolved:\n%s\nwant %s", s.get(dropIn), want)
			}
		})
	}
}

func TestHardCase16WaitsForNameservers(t *testing.T) {
	for _, first := range []string{"", "# Generated by NetworkManager\nsearch example.com\n"} {
		s := newSandbox(t)
		if first != "" {
			s.put(Source, first)
		}
		result := make(chan error, 1)
		go func() { result <- s.run() }()
		testkit.Await(t, "word of it", func() bool { return strings.Contains(s.logged.String(), "waiting for a nameserver") })
		testkit.Empty(t, result)
		testkit.Equal(t, "--", s.get(resolvConf)+s.get(doneFile))
		s.put(Source, first+"nameserver 192.0.2.53\n")
		testkit.Must(t, <-result)
		testkit.Equal(t, "192.0.2.10 192.0.2.53", s.nameservers())
		testkit.Equal(t, 1, strings.Count(s.logged.String(), "waiting"))
	}
}

// Name servers or domains that change while a run writes and reports them are written by it, too.
func TestChangeDuringARun(t *testing.T) {
	for path, contents := range map[string][]string{
		Source:      {"nameserver 192.0.2.54\nsearch x.example\n", "nameserver 192.0.2.53\nsearch b.example\n"},
		environment: {"IP4_DOMAINS=a.example\n", "IP4_DOMAINS=b.example\n"},
	} {
		s := newSandbox(t)
		s.put(Source, "nameserver 192.0.2.53\n")
		s.Changed = func(context.Context, string) error {
			if len(contents) > 0 {
				s.put(path, contents[0])
				contents = contents[1:]
			}
			return nil
		}
		testkit.Must(t, s.run())
		testkit.Equal(t, "192.0.2.10 192.0.2.53", s.nameservers())
		testkit.Equal(t, []string{"demo.example.com", "b.example"}, Parse([]byte(s.get(resolvConf))).Search)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	s := newSandbox(t)
	ctx, stop := context.WithCancelCause(context.Background())
	reason := errors.New("told to")
	stop(reason)
	if err := s.Run(ctx); !errors.Is(err, reason) || s.get(doneFile) != "-" {
		t.Errorf("error %v, done %q", err, s.get(doneFile))
	}
}

func TestUpstreamsOfTheClusterReplaceTheNetworks(t *testing.T) {
	s := newSandbox(t)
	s.Spec.DNS.Upstreams = testkit.Addrs("192.0.2.10", "203.0.113.53")
	for _, source := range []string{"", "nameserver 192.0.2.53\nsearch example.com\n"} { // it does not wait either
		if source != "" {
			s.put(Source, source)
		}
		testkit.Must(t, s.run())
		testkit.Equal(t, "192.0.2.10 203.0.113.53", s.nameservers())
	}
	testkit.Equal(t, 2, len(Parse([]byte(s.get(resolvConf))).Search))
}

func TestSystemdResolved(t *testing.T) {
	for _, target := range []string{"../run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/resolv.conf", "../usr/lib/systemd/resolv.conf"} {
		s := newSandbox(t)
		s.link(target)
		s.Spec.Groups = []v1alpha1.Group{{Domains: []string{"apps.demo.example.com", "demo.example.com"}}, {Domains: []string{"shop.example", "xdemo.example.com", "shop.example"}}}
		s.Spec.DNS.Records = []v1alpha1.DNSRecord{{Name: "*.lab.example"}}
		want := "# Written by vipgen-agent resolv-conf.\n[Resolve]\nDNS=192.0.2.10\nDomains=demo.example.com ~shop.example ~xdemo.example.com ~lab.example\n"

		s.fail = errors.New("no D-Bus")
		if err := s.run(); !errors.Is(err, s.fail) || s.get(doneFile) != "-" {
			t.Errorf("error %v, done %q", err, s.get(doneFile))
		}
		s.fail = nil
		for _, step := range []struct {
			name, address string
			reloads       int
		}{
			{"reload again after a failure", "192.0.2.10", 2},
			{"nothing to do", "192.0.2.10", 2},
			{"another address", "192.0.2.11", 3},
			{"nothing to do again", "192.0.2.11", 3},
		} {
			s.Address = netip.MustParseAddr(step.address)
			testkit.Must(testkit.In(t, step.name), s.run())
			want := strings.ReplaceAll(want, "192.0.2.10", step.address)
			if s.get(dropIn) != want || s.reloads != step.reloads || s.get(doneFile) != "" {
				t.Errorf("%s: %d reloads, done %q, drop-in:\n%s\nwant %d reloads, done, and:\n%s", step.name, s.reloads, s.get(doneFile), s.get(dropIn), step.reloads, want)
			}
		}
		if got, err := os.Readlink(filepath.Join(s.Root, resolvConf)); err != nil || got != target {
			t.Errorf("resolv.conf leads to %q, %v", got, err)
		}
	}
}
