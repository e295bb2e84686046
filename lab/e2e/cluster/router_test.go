package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

const routerNamespace = "openshift-ingress"

// routers are pods of the default ingress controller with a real HAProxy, which answers every
// request with its node's name. They are bound to their nodes by hand, because no scheduler runs.
const routers = `apiVersion: v1
kind: ConfigMap
metadata: {name: router, namespace: ` + routerNamespace + `}
data:
  haproxy.cfg: |
    global
      maxconn 500
    defaults
      mode http
      timeout connect 1s
      timeout client 10s
      timeout server 10s
    frontend pages
      bind :80
      bind :443
      http-request return status 200 content-type text/plain lf-string "%[env(NODE)]"
    frontend health
      bind :1936
      http-request return status 200 content-type text/plain string ok
`

const router = `---
apiVersion: v1
kind: Pod
metadata:
  name: router-default-%[1]s
  namespace: ` + routerNamespace + `
  labels: {ingresscontroller.operator.openshift.io/deployment-ingresscontroller: default}
spec:
  nodeName: %[1]s
  hostNetwork: true
  automountServiceAccountToken: false
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 5
  containers:
  - name: router
    image: %[2]s
    command: [/usr/sbin/haproxy, -f, /config/haproxy.cfg]
    env: [{name: NODE, value: %[1]s}]
    securityContext: {runAsUser: 0}
    readinessProbe: {httpGet: {path: /healthz/ready, port: 1936}, periodSeconds: 2}
    livenessProbe: {httpGet: {path: /healthz, port: 1936}}
    volumeMounts: [{name: config, mountPath: /config}]
  volumes: [{name: config, configMap: {name: router}}]
`

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
