package explain

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/manifest"
)

// Clients describes the requirements of a group's VIPs on clients.
type Clients struct {
	// Names lead to the VIPs on the cluster's nodes; the site's own DNS needs them as well.
	Names []string `json:"names"`
	// ServerName is a name that an existing certificate covers.
	ServerName string `json:"serverName,omitempty"`
	// Words are the consequences, a paragraph each.
	Words []string `json:"words"`
}

// clients returns the needs of clients at VIPs that not every cluster has, or nil.
func clients(c *render.Cluster, g *v1alpha1.Group) *Clients {
	s := &c.Config.Spec
	switch {
	case g.AdditionalAPI():
		return apiClients(s, g)
	case g.Role == v1alpha1.GroupIngress:
		return ingressClients(c, g)
	}
	return nil
}

// ingressClients covers ingress groups: the ingress operator's certificate for a controller
// covers the domain of that controller's own object alone, which for the default one is the
// cluster's.
func ingressClients(c *render.Cluster, g *v1alpha1.Group) *Clients {
	usual := "apps." + c.Config.Spec.Domain
	var more []string
	for _, d := range g.Domains {
		if d != usual {
			more = append(more, "*."+d)
		}
	}
	if len(more) == 0 {
		return nil
	}
	out := &Clients{Names: more, Words: []string{resolves(more)}}
	if g.Controller == v1alpha1.DefaultIngress {
		out.ServerName = "*." + usual
		out.Words = append(out.Words, fmt.Sprintf("By default, the routers' certificate covers %s alone. Routes below other domains bring a certificate of "+
			"their own, or spec.defaultCertificate of the IngressController %s names one that covers all of them.", out.ServerName, g.Controller))
	} else {
		out.Words = append(out.Words, fmt.Sprintf("The routers' certificate covers the spec.domain of the IngressController %s, unless its spec.defaultCertificate names another.", g.Controller))
	}
	if slices.Contains(g.Domains, c.AppsDomain) && c.AppsDomain != usual {
		out.Words = append(out.Words, fmt.Sprintf("Routes that name no host get one below %s while spec.appsDomain of the cluster's Ingress object (ingresses.config.openshift.io) has that domain.", c.AppsDomain))
	}
	return out
}

// apiClients covers API groups: an API server chooses its certificate by the server name of the
// client (TLS server name indication), else by the address at which the connection reached it,
// which is the node's behind HAProxy and never a VIP (k8s.io/apiserver,
// DynamicServingCertificateController.GetConfigForClient).
func apiClients(s *v1alpha1.ClusterConfigSpec, g *v1alpha1.Group) *Clients {
	usual := "api." + s.Domain
	vip := net.JoinHostPort(g.VIPs[0].String(), strconv.Itoa(s.Ports.API))
	return &Clients{
		Names: g.Names, ServerName: usual,
		Words: []string{
			resolves(g.Names),
			fmt.Sprintf("By default, the API servers' certificate covers %s, and neither a name nor an address of these VIPs. Clients can verify that name all the same: "+
				"kubectl --server https://%s --tls-server-name %[1]s, or tls-server-name in a kubeconfig.", usual, vip),
			fmt.Sprintf("https://%s takes a certificate for that name, see below. Addresses cannot be verified: an API server behind HAProxy "+
				"does not see which one a client asked for.", net.JoinHostPort(g.Names[0], strconv.Itoa(s.Ports.API))),
		},
	}
}

func resolves(names []string) string {
	return fmt.Sprintf("The nodes resolve %s to these VIPs. Other clients need the same in the DNS that they ask.", list(names))
}

func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// namedCertificates returns the part of OpenShift's APIServer object with certificates for the
// names of additional API VIPs, or "". Its secrets are of type kubernetes.io/tls, in
// openshift-config.
func namedCertificates(s *v1alpha1.ClusterConfigSpec) (string, error) {
	var list []manifest.NamedCertificate
	for i := range s.Groups {
		if g := &s.Groups[i]; g.AdditionalAPI() {
			list = append(list, manifest.Certificate(g.Name, g.Names))
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	object, err := manifest.APIServer(list...)
	return string(object), err
}
