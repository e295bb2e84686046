package lab

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/standin"
)

// serve runs a stand-in for as long as the cluster.
func (c *cluster) serve(s *standin.Service, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	c.top.Cleanup(s.Stop)
}

// putRouter runs a router of the default ingress controller on a node: a
// stand-in for it, and its pod object.
func (c *cluster) putRouter(name string) {
	c.t.Helper()
	c.serve(standin.NewRouter(c.node(name).Node, v1alpha1.DefaultPorts.RouterHealth))
	c.putRouterPod("default", name)
}

// putRouterPod makes the object of a ready router pod.
func (c *cluster) putRouterPod(controller, name string) {
	c.t.Helper()
	api := c.api()
	api.Create(routerPods, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"router-%s-%s","labels":{%q:%[1]q}},
		"spec":{"nodeName":%[2]q,"hostNetwork":true,"containers":[{"name":"router","image":"router"}]}}`, controller, name, routerLabel))
	api.Patch(routerPods+"/router-"+controller+"-"+name+"/status", []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
}
