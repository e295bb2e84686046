package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// kubeconfig returns a kubeconfig with new credentials.
func (c *cluster) kubeconfig(host, user string, groups ...string) []byte {
	c.t.Helper()
	return rig.Kubeconfig(c.t, c.ca, host, user, groups...)
}

// administrator is the kubeconfig of the cluster's administrator.
func (c *cluster) administrator(host string) []byte {
	return c.kubeconfig(host, "admin", "system:masters")
}

// kubectlAt runs kubectl against an API server, or the VIP, from the client's host, and returns
// its output.
func (c *cluster) kubectlAt(ctx context.Context, addr netip.Addr, args ...string) (string, error) {
	config := filepath.Join(c.dir, "kubeconfig-"+addr.String())
	if _, err := os.Stat(config); err != nil {
		if err := os.WriteFile(config, c.administrator(addr.String()), 0o600); err != nil {
			return "", err
		}
	}
	cmd := c.client.Command(ctx, rig.Tool(c.t, "kubectl"), append([]string{"--kubeconfig", config, "--cache-dir", filepath.Join(c.dir, "kubectl")}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s at %s: %w: %s", strings.Join(args, " "), addr, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// kubectl sends a request to the VIP, and retries until it is answered.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	var out string
	var err error
	for deadline := time.Now().Add(rig.Patience); time.Now().Before(deadline); time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		out, err = c.kubectlAt(ctx, c.vip, args...)
		cancel()
		if err == nil {
			return out
		}
	}
	c.t.Fatal(err)
	panic("not reached")
}

// clients returns client-go's clients as administrator, from the client's host.
func (c *cluster) clients(addr netip.Addr, timeout time.Duration) *kubernetes.Clientset {
	c.t.Helper()
	set, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + netip.AddrPortFrom(addr, 6443).String(), Dial: c.client.DialContext, QPS: -1, Timeout: timeout,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM, CertData: c.admin.Cert, KeyData: c.admin.Key},
	})
	c.must(err)
	return set
}

// serves reports whether the node's API server is ready.
func (c *cluster) serves(n *node) bool {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	out, err := c.kubectlAt(ctx, n.addr, "get", "--raw", "/readyz")
	return err == nil && out == "ok"
}
