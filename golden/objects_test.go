package golden

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// strict decodes an object of a known kind as the API server does with strict field validation:
// no field is unknown, duplicate or misspelt in case.
func strict(t *testing.T, path string, data []byte, into any) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict(data)
	testkit.Must(testkit.In(t, path), err)
	unknown, err := kjson.UnmarshalStrict(asJSON, into)
	if err != nil || len(unknown) > 0 {
		t.Errorf("%s: %v %v", path, err, unknown)
	}
}

// checkPods: the static pods are valid, and kubelet can run them without an API server.
func checkPods(t *testing.T, r result) {
	for p, data := range r.rendered.below("files") {
		if !strings.HasSuffix(path.Dir(p), "/etc/kubernetes/manifests") {
			continue
		}
		var pod corev1.Pod
		strict(t, p, data, &pod)
		if pod.APIVersion != "v1" || pod.Kind != "Pod" || pod.Name+".yaml" != path.Base(p) {
			t.Errorf("%s is %s %s %s", p, pod.APIVersion, pod.Kind, pod.Name)
		}
		if !pod.Spec.HostNetwork || pod.Spec.PriorityClassName != "system-node-critical" ||
			!slices.Equal(pod.Spec.Tolerations, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}) {
			t.Errorf("%s does not run everywhere, first and on the host's network", p)
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			checkContainer(t, p, &pod, &c)
		}
	}
}

func checkContainer(t *testing.T, path string, pod *corev1.Pod, c *corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: container %s has a writable root or capabilities that it was not given", path, c.Name)
	}
	// Only containers that no VIP depends on have limits: docs/security.md.
	if limited := len(c.Resources.Limits) > 0; len(c.Resources.Requests) == 0 || limited != (c.Name == "mdns-publisher") || !c.Resources.Limits.Cpu().IsZero() {
		t.Errorf("%s: container %s has requests %v and limits %v", path, c.Name, c.Resources.Requests, c.Resources.Limits)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("%s: container %s mounts %s, which the pod does not have", path, c.Name, m.Name)
		}
	}
}

// checkManifests: each is an object of its type, in its own file.
func checkManifests(t *testing.T, r result) {
	for name, data := range r.rendered.below("manifests") {
		var into any
		switch name {
		case "namespace.yaml":
			into = &corev1.Namespace{}
		case "clusterrole.yaml":
			into = &rbacv1.ClusterRole{}
		case "clusterrolebinding.yaml":
			into = &rbacv1.ClusterRoleBinding{}
		case "role.yaml":
			into = &rbacv1.Role{}
		case "rolebinding.yaml":
			into = &rbacv1.RoleBinding{}
		case "node-disruption-policy.yaml":
			into = &operatorv1.MachineConfiguration{}
		case "monitoring-namespace.yaml":
			into = &corev1.Namespace{}
		case "monitoring-role.yaml":
			into = &rbacv1.Role{}
		case "monitoring-rolebinding.yaml":
			into = &rbacv1.RoleBinding{}
		case "dashboard.yaml":
			into = &corev1.ConfigMap{}
		case "podmonitor.yaml", "prometheusrule.yaml": // TestRules and TestPodMonitor in templates/manifest
			into = &struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
				Spec              json.RawMessage `json:"spec"`
			}{}
		default:
			t.Errorf("no type is known for manifests/%s", name)
			continue
		}
		strict(t, name, data, into)
	}
}
