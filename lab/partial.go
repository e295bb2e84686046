package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// HalfAPI replaces the node's API server by a server that answers its health checks and hangs on all
// other requests. restore starts the API server again.
func (n *Node) HalfAPI() (restore func(context.Context) error, err error) {
	spec := n.cluster.Spec()
	names := []string{n.Name, "localhost", "127.0.0.1", "api." + spec.Domain, "api-int." + spec.Domain}
	for _, a := range n.OwnAddresses() {
		names = append(names, a.Addr().String())
	}
	for _, vip := range spec.Groups[0].VIPs {
		names = append(names, vip.String())
	}
	pair, err := n.cluster.API.CA().Serving(names...)
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err == nil {
		err = n.API.Kill()
	}
	if err != nil {
		return nil, err
	}
	l, err := process.ListenAll(n.Host.Node, 6443)
	if err == nil {
		server := &http.Server{Handler: http.HandlerFunc(answerHealth), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
		go server.ServeTLS(l, "", "")
	}
	return func(ctx context.Context) error {
		if l != nil {
			l.Kill()
		}
		return errors.Join(n.API.Launch(), n.API.AwaitReady(ctx))
	}, err
}

func answerHealth(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/readyz", "/livez", "/healthz":
		fmt.Fprint(w, "ok")
	default:
		<-r.Context().Done()
	}
}

// ReadOnly makes a mount of a running container read-only until restore, which fails if the container
// has ended.
func (n *Node) ReadOnly(ctx context.Context, podName, container, dir string) (restore func() error, err error) {
	running, err := n.Running(ctx, podName, container)
	if err != nil {
		return nil, err
	}
	pid, err := running.PID()
	if err != nil {
		return nil, err
	}
	remount := func(how string) error {
		out, err := exec.Command("nsenter", "--target", strconv.Itoa(pid), "--mount", "--", "mount", "-o", "remount,bind,"+how, dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("remounting %s %s: %w: %s", dir, how, err, out)
		}
		return nil
	}
	return func() error { return remount("rw") }, remount("ro")
}

// ControlGroup returns the directory of a running container's control group for a controller of version 1,
// such as memory; none if the machine has none.
func (n *Node) ControlGroup(ctx context.Context, podName, container, controller string) (string, error) {
	running, err := n.Running(ctx, podName, container)
	if err != nil {
		return "", err
	}
	for _, file := range host.CgroupFiles(filepath.Join(n.Cgroup(), running.ID)) {
		if strings.Contains(file, "/"+controller+"/") {
			return filepath.Dir(file), nil
		}
	}
	return "", nil
}

// NoProcesses keeps a running container from starting processes and threads, until lift. It does
// nothing if the machine has no controller of version 1 for that.
func (n *Node) NoProcesses(ctx context.Context, podName, container string) (lift func(), err error) {
	group, err := n.ControlGroup(ctx, podName, container, "pids")
	if err != nil || group == "" {
		return nil, err
	}
	now, err := os.ReadFile(group + "/pids.current")
	if err == nil {
		err = os.WriteFile(group+"/pids.max", now, 0)
	}
	return func() { _ = os.WriteFile(group+"/pids.max", []byte("max"), 0) }, err // gone with its container, if that ended
}

// ManyGroups returns a cluster.yaml with 10,000 groups more, which no agent takes.
func ManyGroups(data []byte) ([]byte, error) {
	c, err := v1alpha1.LoadClusterConfig("cluster.yaml", data)
	if err != nil {
		return nil, err
	}
	g := c.Spec.Groups[0]
	for i := range 10000 {
		g.Name = fmt.Sprintf("api-%d", i)
		c.Spec.Groups = append(c.Spec.Groups, g)
	}
	return c.Marshal()
}
