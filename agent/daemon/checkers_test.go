package daemon_test

import (
	"context"
	_ "embed"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/coredns"
	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/haproxy"
	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

const keepalivedConf = `global_defs { dynamic_interfaces }
vrrp_instance demo_API_0 {
	state BACKUP
	interface eth7
	virtual_router_id 7
	priority 40
	virtual_ipaddress { 192.0.2.5/32 }
}
`

//go:embed testdata/haproxy.cfg
var haproxyConf string

// The Corefile could not start here: its address and its file do not exist, and its ports are
// those of other tests.
//
//go:embed testdata/Corefile
var corefile string

func TestCheckers(t *testing.T) {
	testkit.Privileged(t)
	c := coredns.Check(testkit.Tool(t, "coredns"))
	k, h := keepalived.Check(testkit.Program(t, "keepalived")), haproxy.Check(testkit.Program(t, "haproxy"))
	for name, tt := range map[string]struct {
		check daemon.Checker
		conf  string
		want  string // part of the refusal
	}{
		"keepalived":                      {k, keepalivedConf, ""},
		"keepalived, unknown keyword":     {k, strings.Replace(keepalivedConf, "priority 40", "prority 40", 1), "Line 6"},
		"keepalived, only a warning":      {k, strings.Replace(keepalivedConf, "priority 40", "priority 400", 1), "outside range"},
		"keepalived, missing include":     {k, keepalivedConf + "include /no/such/file\n", "Config files missing"},
		"haproxy":                         {h, haproxyConf, ""},
		"haproxy, only a warning":         {h, strings.Replace(haproxyConf, "\ttimeout client 1s\n", "", 1), ""},
		"haproxy, unknown keyword":        {h, strings.Replace(haproxyConf, "server master-0", "sever master-0", 1), "[candidate:10]"},
		"haproxy, backend missing":        {h, strings.Replace(haproxyConf, "\nbackend api-servers\n", "\nbackend apis\n", 1), "api-servers"},
		"coredns":                         {c, corefile, ""},
		"coredns, unknown plugin":         {c, strings.Replace(corefile, "errors", "erors", 1), "erors"},
		"coredns, wrong upstream":         {c, strings.Replace(corefile, "forward . 192.0.2.1", "forward . upstream.example", 1), "forward"},
		"coredns, unclosed brace":         {c, strings.TrimSuffix(corefile, "}\n"), "expecting '}'"},
		"coredns, unclosed pattern":       {c, strings.Replace(corefile, `^.+`, `^(.+`, 1), "missing closing )"},
		"coredns, one server twice":       {c, corefile + ".:5353 {\n\tbind 127.0.0.3\n\tacl {\n\t\tnonsense\n\t}\n}\n", "nonsense"},
		"coredns, health without address": {c, strings.Replace(corefile, "health 127.0.0.1:18080", "health", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			candidate := filepath.Join(t.TempDir(), ".conf.candidate")
			testkit.WriteFile(t, candidate, []byte(tt.conf))
			err := tt.check(context.Background(), candidate)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want one with %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), candidate):
				t.Errorf("names the candidate: %v", err)
			}
			if again := tt.check(context.Background(), candidate); err != nil && (again == nil || again.Error() != err.Error()) {
				t.Errorf("%v, and then %v: the same complaint is to read the same", err, again)
			}
			if left, _ := filepath.Glob(candidate + "?*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// The trial run listens on other ports than the running CoreDNS.
func TestCorefileTrialUsesOtherPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	text := ".:" + port + " {\n\tbind 127.0.0.1\n\thealth " + address + "\n\twhoami\n}\n"
	candidate := filepath.Join(t.TempDir(), "candidate")
	testkit.WriteFile(t, candidate, []byte(text))
	testkit.Check(t, coredns.Check(testkit.Tool(t, "coredns"))(context.Background(), candidate))
}

func TestCheckersAreBounded(t *testing.T) {
	hangs := filepath.Join(t.TempDir(), "hangs")
	testkit.Must(t, process.WriteProgram(hangs, []byte("#!/bin/sh\nsleep 1000\n")))
	candidate := filepath.Join(t.TempDir(), "candidate")
	testkit.WriteFile(t, candidate, nil)
	for name, check := range map[string]daemon.Checker{"keepalived": keepalived.Check(hangs), "haproxy": haproxy.Check(hangs), "coredns": coredns.Check(hangs)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			testkit.Is(t, check(ctx, candidate), context.DeadlineExceeded)
		})
	}
}
