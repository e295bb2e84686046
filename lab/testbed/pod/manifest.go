package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Read parses a manifest strictly and rejects what the package does not support.
func Read(manifest []byte) (*corev1.Pod, error) {
	var p corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &p); err != nil {
		return nil, err
	}
	if p.Kind != "Pod" || p.APIVersion != "v1" || p.Name == "" {
		return nil, fmt.Errorf("%s %s %q is not a Pod", p.APIVersion, p.Kind, p.Name)
	}
	return &p, check(&p.Spec)
}

// uid returns the UID of a static pod: for kubelet, a changed manifest is another pod.
func uid(manifest []byte, node string) string {
	sum := sha256.Sum256(append(manifest, node...))
	return hex.EncodeToString(sum[:16])
}

func check(s *corev1.PodSpec) error {
	var errs []error
	refuse := func(is bool, what string) {
		if is {
			errs = append(errs, errors.New(what+" is not supported"))
		}
	}
	refuse(!s.HostNetwork, "a network of its own")
	refuse(s.HostPID || s.HostIPC || s.ShareProcessNamespace != nil, "sharing PID or IPC namespaces")
	refuse(s.RestartPolicy != "" && s.RestartPolicy != corev1.RestartPolicyAlways, "restartPolicy "+string(s.RestartPolicy))
	refuse(len(s.EphemeralContainers) > 0, "an ephemeral container")
	for _, v := range s.Volumes {
		refuse(v.HostPath == nil && v.EmptyDir == nil, "the kind of volume "+v.Name)
	}
	if len(s.Containers) == 0 {
		errs = append(errs, errors.New("no containers"))
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		refuse(len(c.Command) == 0, c.Name+": the image's own command")
		refuse(len(c.EnvFrom) > 0, c.Name+": envFrom")
		refuse(c.Lifecycle != nil, c.Name+": lifecycle")
		refuse(c.StartupProbe != nil || c.ReadinessProbe != nil, c.Name+": a startup or readiness probe")
		refuse(c.RestartPolicy != nil, c.Name+": a restartPolicy of its own")
		refuse(len(c.VolumeDevices) > 0 || c.TTY || c.Stdin, c.Name+": a device or terminal")
		if p := c.LivenessProbe; p != nil {
			refuse(p.Exec == nil && p.HTTPGet == nil, c.Name+": the kind of liveness probe")
		}
		errs = append(errs, checkReferences(s, c)...)
	}
	return errors.Join(errs...)
}

func checkReferences(s *corev1.PodSpec, c corev1.Container) (errs []error) {
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			errs = append(errs, fmt.Errorf("%s mounts unknown volume %s", c.Name, m.Name))
		}
		if m.SubPath != "" || m.SubPathExpr != "" || m.RecursiveReadOnly != nil {
			errs = append(errs, fmt.Errorf("%s: mount options of %s are not supported", c.Name, m.Name))
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if f := e.ValueFrom.FieldRef; f == nil || fieldRefs[f.FieldPath] == nil {
			errs = append(errs, fmt.Errorf("%s: source of %s is not supported", c.Name, e.Name))
		}
	}
	return errs
}

// fieldRefs are the supported fields of a pod for its environment.
var fieldRefs = map[string]func(p *corev1.Pod, node string) string{
	"spec.nodeName":      func(_ *corev1.Pod, node string) string { return node },
	"metadata.name":      func(p *corev1.Pod, node string) string { return p.Name + "-" + node }, // the mirror pod's name
	"metadata.namespace": func(p *corev1.Pod, _ string) string { return p.Namespace },
}
