package render

import (
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
	"github.com/vipgen/vipgen/templates/manifest"
	"github.com/vipgen/vipgen/templates/unit"
)

// Bundles returns the files and units of every pool, in the order of c.Roles.
func (c *Cluster) Bundles() ([]ignition.Bundle, error) {
	config, err := c.Config.Marshal()
	if err != nil {
		return nil, err
	}
	var out []ignition.Bundle
	for _, role := range c.Roles {
		b, err := c.bundle(role, config)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func (c *Cluster) bundle(role string, config []byte) (ignition.Bundle, error) {
	b := ignition.Bundle{Role: role}
	add := func(path string, contents []byte) {
		b.Files = append(b.Files, ignition.File{Path: path, Mode: 0o644, Contents: contents})
	}
	add(v1alpha1.ClusterConfigPath, config)
	add(v1alpha1.CorefileTemplate, []byte(coredns.Template))
	add(v1alpha1.HostsTemplate, []byte(coredns.HostsTemplate))
	add(assets.NetworkManagerPath, []byte(assets.NetworkManager))
	for _, name := range c.Pods(role) {
		switch name {
		case manifest.Keepalived:
			add(v1alpha1.KeepalivedTemplate, []byte(keepalived.Template))
			add(v1alpha1.ModeFile, modeFile(c.Config.Spec.VRRP.Target))
		case manifest.BGP:
			if !c.OwnsBootstrap() && !c.Config.Spec.ByVRRP() {
				add(v1alpha1.ManifestDir+"/"+manifest.Keepalived+".yaml", []byte(noKeepalived))
			}
		case manifest.HAProxy:
			add(v1alpha1.HAProxyTemplate, []byte(haproxy.Template))
		}
		text, err := manifest.RenderPod(name, manifest.PodParams{Role: role, Namespace: c.Namespace, Images: c.Images, ByInterface: c.Config.Spec.BGP.ByInterface()})
		if err != nil {
			return b, err
		}
		add(v1alpha1.ManifestDir+"/"+name+".yaml", text)
	}
	if c.ReplacesLoadBalancer() {
		for _, name := range assets.BalancerManifests(baseRole(role), c.Version) {
			add(name, []byte(noPod))
		}
	}
	units, err := unit.Render(unit.Params{AgentImage: c.Images.Agent, AuthFile: c.authFile(role), Hints: assets.NodeIPHints(c.operatorHasVIPs(), c.Version)})
	if err != nil {
		return b, err
	}
	for _, u := range units {
		b.Units = append(b.Units, ignition.Unit{Name: u.Name, Enabled: &u.Enabled, Contents: u.Contents})
	}
	return b, b.Sort()
}

// noPod replaces a manifest of OpenShift's own load balancer: a file of the operator's can be
// replaced, not removed. Kubelet ends the pod when it next lists its manifests, within 20 s
// (pkg/kubelet/config/file.go, extractFromDir skips files without a pod); until then, and when
// the file changes, it leaves the pod running (consumeWatchEvent).
const noPod = "# No pod: an external load balancer has taken the place of OpenShift's own (spec.loadBalancer.type: External of vipgen).\n"

// noKeepalived replaces the manifest of OpenShift's own keepalived.
const noKeepalived = "# No pod: routers know the VIPs, and keepalived does not run (spec.announce of vipgen).\n"

// Pods returns the names of the static pods that nodes of a role run.
func (c *Cluster) Pods(role string) []string {
	pods := []string{manifest.CoreDNS}
	if c.Config.Spec.LoadBalancer != v1alpha1.LoadBalancerNone {
		pods = append(pods, manifest.MDNS)
	}
	if c.Config.Spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		if c.Config.Spec.ByVRRP() {
			pods = append(pods, manifest.Keepalived)
		}
		if c.Config.Spec.Routed() {
			pods = append(pods, manifest.BGP)
		}
		if c.Config.Spec.RunsHAProxy(role) {
			pods = append(pods, manifest.HAProxy)
		}
	}
	return pods
}

// operatorHasVIPs reports whether the operator's own node-ip gets VIPs.
func (c *Cluster) operatorHasVIPs() bool {
	spec := &c.Config.Spec
	return spec.OperatorHasVIPs() && slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return g.Name == v1alpha1.FirstAPI && len(g.VIPs) > 0 })
}

// authFile returns the path of the credentials that pull the agent's image: kubelet's, on the
// bootstrap host the installer's, outside OpenShift podman's.
func (c *Cluster) authFile(role string) string {
	switch {
	case c.OS != ignition.OpenShift:
		return ""
	case role == v1alpha1.RoleBootstrap:
		return "/root/.docker/config.json"
	}
	return "/var/lib/kubelet/config.json"
}

// modeFile returns the mode file with the VRRP settings that a running cluster migrates to; the
// agents migrate together (seed 004).
func modeFile(v v1alpha1.VRRPSettings) []byte {
	return []byte("mode: " + string(v.Mode) + "\nprofile: " + string(v.Profile) + "\n")
}

// Manifest is a cluster manifest.
type Manifest struct {
	// Name is its file name without ".yaml".
	Name     string
	Contents []byte
}

// Manifests returns the cluster manifests that go with the files of the pools.
func (c *Cluster) Manifests() ([]Manifest, error) {
	names := []string{}
	if c.OwnNamespace {
		names = append(names, manifest.Namespace)
	}
	names = append(names, manifest.ClusterRole, manifest.ClusterRoleBinding, manifest.Role, manifest.RoleBinding)
	if c.DisruptionPolicy {
		names = append(names, manifest.NodeDisruptionPolicy)
	}
	if c.Monitoring {
		names = append(names, c.monitoring()...)
	}
	// The control plane runs every container.
	p := manifest.Params{Namespace: c.Namespace, LiveFiles: v1alpha1.LiveFiles(), Monitored: c.Monitored(v1alpha1.RoleMaster)}
	var out []Manifest
	for _, name := range names {
		text, err := manifest.Render(name, p)
		if err != nil {
			return nil, err
		}
		out = append(out, Manifest{Name: name, Contents: text})
	}
	return out, nil
}
