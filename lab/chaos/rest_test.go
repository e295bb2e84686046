package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Remains on a node are found, whatever their kind.
func TestLeaks(t *testing.T) {
	usual := func() normal {
		return normal{
			processes: []string{"bash", "haproxy", "haproxy", "keepalived", "vipgen-agent"}, proxies: 1,
			files: map[string]int{agent: 20}, tables: "table inet vipgen\n", names: map[string]bool{"/etc/keepalived/keepalived.conf": true},
		}
	}
	first := usual()
	for _, tt := range []struct {
		name   string
		change func(*normal)
		want   string // in the message; none if empty
	}{
		{"nothing", func(*normal) {}, ""},
		{"an old worker of HAProxy still has a connection", func(n *normal) { n.proxies++ }, ""},
		{"too many old workers", func(n *normal) { n.proxies += 1 + moreProxies }, "workers of HAProxy"},
		{"a process", func(n *normal) { n.processes = append(n.processes, "zcat") }, "1 zcat"},
		{"a process less", func(n *normal) { n.processes = n.processes[1:] }, "and ran 1 bash"},
		{"a rule", func(n *normal) { n.tables += "table ip left\n" }, "table ip left"},
		{"no rules", func(n *normal) { n.tables = "" }, "it has the tables"},
		{"a temporary file", func(n *normal) { n.names["/etc/keepalived/x.tmp123"] = true }, "x.tmp123"},
		{"the agent's own temporary file, which is used again", func(n *normal) { n.names["/etc/haproxy/.haproxy.cfg.vipgen-new"] = true }, ""},
		{"more open files", func(n *normal) { n.files[agent] += moreFiles }, ""},
		{"too many open files", func(n *normal) { n.files[agent] += moreFiles + 1 }, "files open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := usual()
			tt.change(&now)
			err := now.compare(&first)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An unusable file is found, by the rules of its readers.
func TestFiles(t *testing.T) {
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node")
	n := &lab.Node{Host: &host.Host{Node: node}}
	f := &files{scratch: t.TempDir()}
	const vrrp = "vrrp_instance x {\n state BACKUP\n interface eth0\n virtual_router_id 1\n priority 40\n virtual_ipaddress {\n 192.0.2.5\n }\n}\n"
	const web = "defaults\n mode tcp\n timeout connect 1s\n timeout client 1s\n timeout server 1s\nfrontend x\n bind 127.0.0.1:9999\n"
	for _, tt := range []struct {
		path, text string
		good       bool
	}{
		{"/etc/keepalived/keepalived.conf", vrrp, true},
		{"/etc/keepalived/keepalived.conf", vrrp[:len(vrrp)/2], false},
		{"/etc/keepalived/keepalived.conf", "", false},
		{"/etc/haproxy/haproxy.cfg", web, true},
		{"/etc/haproxy/haproxy.cfg", web + "nonsense\n", false},
		{"/etc/coredns/Corefile", ".:53 {\n}\n", true},
		{"/etc/coredns/Corefile", ".:53 {\n hosts", false},
		{"/run/vipgen/keepalived.json", `{"wanted":true}`, true},
		{"/run/vipgen/keepalived.json", `{"wanted":`, false},
		{"/etc/keepalived/.vipgen-cluster.yaml", "kind: Cluster", false},
		{"/etc/keepalived/something-else", "x", true},
	} {
		if err := f.check(t.Context(), n, tt.path, []byte(tt.text)); (err == nil) != tt.good {
			t.Errorf("%s with %q: %v", tt.path, tt.text, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(f.scratch)); len(left) > 2 {
		t.Errorf("copies pile up: %v", left)
	}
}

// This process is found on its machine, and so is its end.
func TestProcesses(t *testing.T) {
	p, ok := readProcess(os.Getpid())
	if !ok || p.parent != os.Getppid() || p.zombie || p.files == 0 {
		t.Errorf("%+v, %t", p, ok)
	}
	if found := processesOf(0); found != nil {
		t.Errorf("a node that is off runs %v", found)
	}
}
