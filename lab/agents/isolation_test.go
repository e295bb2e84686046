package agents

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A compromised daemon has neither the agent's credentials nor its files, and its container has
// none of the other jobs'.
func TestDaemonIsIsolated(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	t.Run("haproxy", func(t *testing.T) {
		b := newBalancer(t)
		b.nodes("master-0 192.0.2.10")
		b.up(m0)
		b.isolated("haproxy")
	})
	t.Run("coredns", func(t *testing.T) {
		r := newResolver(t)
		r.awaitState("CoreDNS to serve", func(s state.CoreDNS) bool { return s.Serving })
		r.isolated("coredns")
	})
}

// isolated checks the privileges of the daemon in the service's container.
func (s *service) isolated(daemon string) {
	s.t.Helper()
	user := strconv.Itoa(supervise.DaemonUser)
	lines := []string{
		`Uid:\s+` + user + `\s+` + user + `\s+` + user, `Gid:\s+` + user, `Groups:\s*`,
		`CapPrm:\s+0000000000000400`, `CapEff:\s+0000000000000400`, `NoNewPrivs:\s+1`,
	}
	// Repeated: processes that end after a reload, or only check a file, are soon gone.
	var wrong string
	testkit.AwaitWithin(s.t, waitTime, daemon+" to run with nothing of the agent's", func() bool {
		pids := s.pids(daemon)
		for _, pid := range pids {
			status, err := os.ReadFile("/proc/" + pid + "/status")
			if err != nil {
				wrong = err.Error()
				return false
			}
			for _, line := range lines {
				if !regexp.MustCompile(`(?m)^` + line + `\s*$|^` + line + `\s`).Match(status) {
					wrong = fmt.Sprintf("without %q:\n%s", line, status)
					return false
				}
			}
		}
		wrong = "it does not run"
		return len(pids) > 0
	}, func() string { return wrong })
	// As kubelet writes it, with the same path in the container and on the host.
	testkit.Must(s.t, os.Chmod(s.Path("/var/lib/kubelet/kubeconfig"), 0o600))
	s.put("/var/lib/kubelet/pods/other/secret", "secret")
	s.put(v1alpha1.TrackDir+"/lb-path", "0")
	asDaemon := []string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"}
	for _, try := range []struct {
		name   string
		asRoot bool
		script string
	}{
		{"the kubeconfig", false, "cat /var/lib/kubelet/kubeconfig"},
		{"the client certificate", false, "cat /var/lib/kubelet/pki/kubelet-client-current.pem"},
		{"its configuration", false, "echo > /etc/" + daemon + "/mine"},
		{"its job's files", false, "echo > /run/vipgen/" + daemon + "/mine"},
		{"what its job says", false, "cat /run/vipgen/" + daemon + "/state.json"},
		{"the agent", false, "kill -0 1"},
		{"other pods", true, "ls /var/lib/kubelet/pods"},
		{"a track file", true, "echo 1 > " + v1alpha1.TrackDir + "/lb-path"},
		{"another job's files", true, "echo > /run/vipgen/keepalived/mine"},
		{"the level of all jobs", true, "echo > /run/vipgen/log-level"},
	} {
		command := []string{"sh", "-c", try.script}
		if !try.asRoot {
			command = append(slices.Clone(asDaemon), command...)
		}
		if out, code, err := s.running.Exec(s.t.Context(), command...); err != nil || code == 0 {
			s.t.Errorf("%s: %s is within reach: %s (%v)", daemon, try.name, out, err)
		}
	}
	if out, code, err := s.running.Exec(s.t.Context(), append(asDaemon, "true")...); err != nil || code != 0 {
		s.t.Errorf("nothing can be tried as %s: %s (%v)", user, out, err)
	}
}
