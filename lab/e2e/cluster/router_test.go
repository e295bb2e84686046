package cluster

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

const routerNamespace = "openshift-ingress"

// routers are pods of the default ingress controller with a real HAProxy, which answers every
// request with its node's name. They are bound to their nodes by hand, because no scheduler runs.
//
//go:embed testdata/router-config.yaml
var routers string

//go:embed testdata/router-pod.fmt
var router string

// startRouters starts a router on each worker.
func (c *cluster) startRouters() {
	c.t.Helper()
	text := routers
	image := c.masters[0].pods["haproxy"].Spec.Containers[0].Image
	for _, n := range c.workers {
		text += fmt.Sprintf(router, n.Name, image)
	}
	file := filepath.Join(c.dir, "routers.yaml")
	c.must(os.WriteFile(file, []byte(text), 0o600))
	c.kubectl("apply", "-f", file)
	for _, n := range c.workers {
		c.kubectl("wait", "pod", "router-default-"+n.Name, "-n", routerNamespace, "--for=condition=Ready", "--timeout=60s")
	}
	if c.routed = len(c.workers) > 0; c.routed {
		c.holder(ingressVIP)
	}
}
