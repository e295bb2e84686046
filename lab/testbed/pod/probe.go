package pod

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/lab/testbed/container"
)

// probe runs the container's liveness probe, from the container's start until ctx ends, and closes
// unhealthy when it has failed failureThreshold times in a row.
func (c *Container) probe(ctx context.Context, running *container.Container, unhealthy chan<- struct{}) {
	p := c.spec.LivenessProbe
	if p == nil {
		return
	}
	pause(ctx, seconds(p.InitialDelaySeconds, 0))
	failures := 0
	for ; ctx.Err() == nil; pause(ctx, seconds(p.PeriodSeconds, 10)) {
		err := c.probeOnce(ctx, running, p)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			continue
		}
		failures++
		c.pod.event("liveness probe failed", "container", c.Name, "error", err)
		if failures >= threshold(p) {
			close(unhealthy)
			return
		}
	}
}

func (c *Container) probeOnce(ctx context.Context, running *container.Container, p *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds, 1))
	defer cancel()
	if p.HTTPGet != nil {
		return c.get(ctx, p.HTTPGet)
	}
	out, code, err := running.Exec(ctx, p.Exec.Command...)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, out)
	}
	return err
}

// get sends a request to the host's first address, which is also the pod's.
func (c *Container) get(ctx context.Context, g *corev1.HTTPGetAction) error {
	node := c.pod.kubelet.Host
	at := g.Host
	if at == "" {
		addrs, err := node.Addresses()
		if err != nil {
			return err
		}
		if len(addrs) == 0 {
			return errors.New("the host has no address")
		}
		at = addrs[0].Addr().String()
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as kubelet does
		DialContext:       node.DialContext,
	}
	url := strings.ToLower(string(g.Scheme))
	if url == "" {
		url = "http"
	}
	url += "://" + net.JoinHostPort(at, c.port(g)) + "/" + strings.TrimPrefix(g.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, h := range g.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// port returns a number, or the number of the container's port with that name.
func (c *Container) port(g *corev1.HTTPGetAction) string {
	for _, p := range c.spec.Ports {
		if p.Name == g.Port.StrVal && p.Name != "" {
			return strconv.Itoa(int(p.ContainerPort))
		}
	}
	return g.Port.String()
}

// probeGrace returns the grace period after a failed probe.
func (c *Container) probeGrace() time.Duration {
	if s := c.spec.LivenessProbe.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return c.pod.grace()
}

func threshold(p *corev1.Probe) int {
	if p.FailureThreshold > 0 {
		return int(p.FailureThreshold)
	}
	return 3
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}
