package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// servingExpired lets all certificates of all API servers expire. The API server of a holder starts
// again, so that its agents have to connect.
func servingExpired(t *testing.T, c *cluster, n *node) func() {
	whole := map[string][]byte{}
	for _, m := range c.masters() {
		for _, name := range []string{"service", "localhost", "internal"} {
			file := filepath.Join(c.cfg.Dir, "api", "kube-apiserver-"+m.Name, name)
			pair := authority.KeyPair{Cert: testkit.ReadFile(t, file+".crt"), Key: testkit.ReadFile(t, file+".key")}
			expired, err := c.API.CA().Expired(pair)
			c.must(err)
			whole[file+".crt"], whole[file+".key"] = pair.Cert, pair.Key
			testkit.WriteFile(t, file+".key", expired.Key)
			testkit.WriteFile(t, file+".crt", expired.Cert)
		}
	}
	c.awaitServing(t, true)
	n.killAPI()
	c.awaitBackend(t, n.backend(false))
	c.must(n.API.Launch())
	return func() {
		for file, data := range whole {
			testkit.WriteFile(t, file, data)
		}
		c.awaitServing(t, false)
		n.awaitStale(t, 0)
	}
}

// awaitServing waits until all API servers serve certificates that are expired, or valid.
func (c *cluster) awaitServing(t *testing.T, expired bool) {
	t.Helper()
	for _, m := range c.masters() {
		for _, name := range []string{"", "localhost"} {
			testkit.AwaitWithin(t, 2*time.Minute, fmt.Sprintf("the certificate of %s for %q to be expired: %t", m.Name, name, expired), func() bool {
				cert := m.serves(name)
				return cert != nil && expired == time.Now().After(cert.NotAfter)
			})
		}
	}
}

// serves returns the certificate that the node's API server serves for a name; nil if none.
func (n *node) serves(name string) *x509.Certificate {
	ctx, cancel := context.WithTimeout(n.cluster.t.Context(), time.Second)
	defer cancel()
	raw, err := n.DialContext(ctx, "tcp", netip.AddrPortFrom(n.Address(), 6443).String())
	if err != nil {
		return nil
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: name})
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil
	}
	return conn.ConnectionState().PeerCertificates[0]
}

// awaitStale waits until the list of nodes of the keepalived job is confirmed (0), or not (1).
func (n *node) awaitStale(t *testing.T, want int) {
	t.Helper()
	testkit.AwaitWithin(t, 2*time.Minute, "the list of nodes", func() bool {
		return n.metric("vipgen_nodes_stale") == fmt.Sprintf("vipgen_nodes_stale %d", want)
	})
}

// clientExpired lets the client certificates of all nodes expire.
func clientExpired(t *testing.T, c *cluster, n *node) func() {
	for _, m := range c.nodes {
		c.must(kubeapi.ExpireKubeconfig(m.Path("/"), kubeletDir, c.API.CA(), m.Name))
	}
	n.killAPI()
	c.awaitBackend(t, n.backend(false))
	n.startAPI()
	return func() {
		for _, m := range c.nodes {
			c.must(m.credentials())
		}
		n.awaitStale(t, 0)
	}
}

// agentStopped stops every agent of the holder, or of a backup.
func agentStopped(backup bool) func(*testing.T, *cluster, *node) func() {
	return func(t *testing.T, c *cluster, n *node) func() {
		if backup {
			n = c.backup(t)
		}
		signal := func(s syscall.Signal) (err error) {
			for _, in := range [][2]string{{manifest.Keepalived, "keepalived"}, {manifest.HAProxy, "haproxy"}, {manifest.HAProxy, "firewall"}, {manifest.CoreDNS, "coredns"}} {
				err = errors.Join(err, n.Signal(t.Context(), in[0], in[1], "vipgen-agent", s))
			}
			return err
		}
		c.must(signal(syscall.SIGSTOP))
		return func() { _ = signal(syscall.SIGCONT) } // liveness probes have restarted them
	}
}

// otherCluster is the file of another cluster on the same link.
func otherCluster(t *testing.T, _ string) string {
	other := strings.NewReplacer("name: demo", "name: other", "192.0.2.5", "192.0.2.105", "192.0.2.6", "192.0.2.106", "db8::5", "db8::105", "db8::6", "db8::106").Replace(demo)
	data, err := load(t, other).Config.Marshal()
	testkit.Must(t, err)
	return string(data)
}

// smallDisks are the directories of both backups of a holder that get few inodes.
func smallDisks(c *cluster, n *node) (dirs []string) {
	for _, m := range c.masters() {
		if m != n {
			dirs = append(dirs, m.Path("/run"), m.Path("/etc/keepalived"))
		}
	}
	return dirs
}

// fewInodes mounts small file systems at /run and keepalived's directory of both backups, which
// boot for that.
func fewInodes(t *testing.T, c *cluster, n *node) {
	boot := func(change func(dir string)) {
		for _, m := range c.masters() {
			if m != n {
				m.powerOff()
			}
		}
		for _, dir := range smallDisks(c, n) {
			change(dir)
		}
		for _, m := range c.masters() {
			if m != n {
				m.powerOn()
			}
		}
	}
	boot(func(dir string) {
		files := contents(t, dir)
		c.must(unix.Mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=200,mode=755"))
		for name, data := range files {
			testkit.WriteFile(t, filepath.Join(dir, name), data)
		}
	})
	t.Cleanup(func() {
		c.t = c.top // the step's context has ended
		boot(func(dir string) { c.must(unix.Unmount(dir, unix.MNT_DETACH)) })
		awaitWell(c.top, c.Cluster)
	})
	awaitWell(t, c.Cluster)
}

// noInodes uses up the inodes of both backups, one of which has become the holder.
func noInodes(t *testing.T, c *cluster, n *node) func() {
	c.must(n.container(manifest.Keepalived, "keepalived").Signal(syscall.SIGTERM))
	holder := c.otherHolder(t, api, n)
	for _, dir := range smallDisks(c, n) {
		useUpInodes(t, dir)
	}
	holder.killAPI() // has states change
	c.awaitBackend(t, holder.backend(false))
	holder.startAPI()
	return func() {
		for _, dir := range smallDisks(c, n) {
			c.must(os.RemoveAll(filepath.Join(dir, "full")))
		}
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	out := map[string][]byte{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			out[e.Name()] = testkit.ReadFile(t, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

func useUpInodes(t *testing.T, dir string) {
	t.Helper()
	full := filepath.Join(dir, "full")
	testkit.Must(t, os.Mkdir(full, 0o755))
	for i := 0; ; i++ {
		err := os.WriteFile(fmt.Sprintf("%s/%d", full, i), nil, 0o644)
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		testkit.Must(t, err)
	}
}
