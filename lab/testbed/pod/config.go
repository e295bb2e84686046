package pod

import (
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/lab/testbed/container"
)

// config returns the configuration of a container of a pod; volumes are the pod's volumes on this
// machine.
func (p *Pod) config(c *corev1.Container, volumes map[string]string) container.Config {
	cfg := container.Config{
		Image:      p.kubelet.Images[c.Image],
		Args:       append(slices.Clone(c.Command), c.Args...),
		Env:        []string{"HOSTNAME=" + p.kubelet.Host.Name},
		WorkingDir: c.WorkingDir,
	}
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = fieldRefs[e.ValueFrom.FieldRef.FieldPath](p.manifest, p.kubelet.Host.Name)
		}
		cfg.Env = append(cfg.Env, e.Name+"="+value)
	}
	for _, m := range c.VolumeMounts {
		cfg.Mounts = append(cfg.Mounts, container.Mount{
			Source: volumes[m.Name], Destination: m.MountPath, ReadOnly: m.ReadOnly, Propagation: propagation(m.MountPropagation),
		})
	}
	secure(&cfg, p.manifest.Spec.SecurityContext, c.SecurityContext)
	for _, path := range hostFiles {
		if _, err := os.Stat(p.copyOf(path)); err == nil {
			cfg.Mounts = append(cfg.Mounts, container.Mount{Source: p.copyOf(path), Destination: path, ReadOnly: cfg.ReadOnlyRoot})
		}
	}
	return cfg
}

func propagation(mode *corev1.MountPropagationMode) string {
	if mode == nil {
		return ""
	}
	switch *mode {
	case corev1.MountPropagationHostToContainer:
		return "rslave"
	case corev1.MountPropagationBidirectional:
		return "rshared"
	}
	return ""
}

// secure applies the security contexts: the container's has precedence over the pod's.
func secure(cfg *container.Config, pod *corev1.PodSecurityContext, c *corev1.SecurityContext) {
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	if c == nil {
		c = &corev1.SecurityContext{}
	}
	for _, id := range []*int64{pod.RunAsUser, c.RunAsUser} {
		if id != nil {
			cfg.UID = uint32(*id)
		}
	}
	for _, id := range []*int64{pod.RunAsGroup, c.RunAsGroup} {
		if id != nil {
			cfg.GID = uint32(*id)
		}
	}
	is := func(b *bool) bool { return b != nil && *b }
	cfg.ReadOnlyRoot = is(c.ReadOnlyRootFilesystem)
	cfg.Privileged = is(c.Privileged)
	cfg.NoNewPrivileges = c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation
	cfg.Capabilities = capabilities(c.Capabilities, cfg.Privileged)
}

// capabilities returns the runtime's default capabilities without the dropped ones, and with the
// added ones.
func capabilities(c *corev1.Capabilities, privileged bool) []string {
	has := map[string]bool{}
	for _, name := range container.DefaultCapabilities() {
		has[name] = true
	}
	all := func(to bool) {
		for _, name := range container.AllCapabilities() {
			has[name] = to
		}
	}
	if privileged {
		all(true)
		c = nil
	}
	if c == nil {
		c = &corev1.Capabilities{}
	}
	// ALL is applied first, in either list: the other entries are exceptions.
	if slices.Contains(c.Add, "ALL") {
		all(true)
	}
	if slices.Contains(c.Drop, "ALL") {
		all(false)
	}
	for _, name := range c.Drop {
		has[capability(name)] = false
	}
	for _, name := range c.Add {
		has[capability(name)] = true
	}
	return slices.DeleteFunc(container.AllCapabilities(), func(name string) bool { return !has[name] })
}

func capability(name corev1.Capability) string {
	return "CAP_" + strings.TrimPrefix(strings.ToUpper(string(name)), "CAP_")
}
