package pods

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	"sigs.k8s.io/yaml"
)

// Kubelet accepts every rendered pod, unchanged.
func TestKubeletTakes(t *testing.T) {
	all := pools(t)
	count := 0
	for _, pool := range slices.Sorted(maps.Keys(all)) {
		t.Run(pool, func(t *testing.T) {
			taken := kubelet.read(t, all[pool])
			for _, name := range slices.Sorted(maps.Keys(all[pool])) {
				count++
				for _, problem := range compare(t, all[pool][name], taken) {
					t.Errorf("%s: %s", name, problem)
				}
			}
			if len(taken) != len(all[pool]) {
				t.Errorf("%d manifests became %d pods", len(all[pool]), len(taken))
			}
		})
	}
	if count == 0 {
		t.Error("no case has a pod")
	}
}

// compare returns the differences between a manifest and the pod that kubelet read from it.
func compare(t *testing.T, manifest []byte, taken []*corev1.Pod) []string {
	t.Helper()
	var written map[string]any
	must(t, yaml.Unmarshal(manifest, &written))
	metadata := written["metadata"].(map[string]any)
	metadata["name"] = fmt.Sprintf("%s-%s", metadata["name"], nodeName)
	i := slices.IndexFunc(taken, func(p *corev1.Pod) bool { return p.Name == metadata["name"] && p.Namespace == metadata["namespace"] })
	if i < 0 {
		return []string{"kubelet makes no pod of it"}
	}
	pod := taken[i]
	problems := priority(pod)
	if pod.Spec.NodeName != nodeName {
		problems = append(problems, "spec.nodeName is "+pod.Spec.NodeName)
	}
	// Added by kubelet, at the end.
	if n := len(pod.Spec.Tolerations); n == 0 || pod.Spec.Tolerations[n-1].Effect != corev1.TaintEffectNoExecute {
		problems = append(problems, "it would be evicted")
	} else {
		pod = pod.DeepCopy()
		pod.Spec.Tolerations = pod.Spec.Tolerations[:n-1]
	}
	data, err := json.Marshal(pod)
	must(t, err)
	var got map[string]any
	must(t, json.Unmarshal(data, &got))
	delete(written, "apiVersion") // consumed by the decoder, like the kind
	delete(written, "kind")
	return append(problems, differences("", written, got)...)
}

// priority checks a pod's priority. When the node shuts down, kubelet uses the number alone,
// which no admission plug-in fills in for a static pod; and the API server refuses a mirror pod
// whose number differs from that of its class.
func priority(pod *corev1.Pod) []string {
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if class.Name != pod.Spec.PriorityClassName {
			continue
		}
		if pod.Spec.Priority == nil || *pod.Spec.Priority != class.Value {
			return []string{fmt.Sprintf("spec.priority is not the %d of its class", class.Value)}
		}
		return nil
	}
	return []string{"its priority class is none of the system's"}
}

// differences returns the fields of want that got lacks, or in which it differs. It may have
// more fields: defaults.
func differences(path string, want, got any) (out []string) {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok && len(want) > 0 {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			out = append(out, differences(path+"."+key, want[key], fields[key])...)
		}
		return out
	case []any:
		items, _ := got.([]any)
		if len(items) != len(want) {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
		for i := range want {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), want[i], items[i])...)
		}
		return out
	}
	if want != got {
		return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
	}
	return nil
}

// Kubelet rejects an invalid pod, or the comparison detects it.
func TestKubeletRefuses(t *testing.T) {
	good := pools(t)["baremetal-usermanaged/master"]["keepalived.yaml"]
	for _, tt := range []struct {
		name, old, new string
		pods           int // that kubelet makes of it
	}{
		{"another priority", "priority: 2000001000", "priority: 2000000000", 1},
		{"volume that is not there", "- name: pids\n      mountPath", "- name: pid\n      mountPath", 0},
		{"field that kubelet does not know", "hostNetwork: true", "hostNetwerk: true", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !bytes.Contains(good, []byte(tt.old)) {
				t.Fatalf("the pod has no %q:\n%s", tt.old, good)
			}
			bad := bytes.Replace(good, []byte(tt.old), []byte(tt.new), 1)
			taken := kubelet.read(t, map[string][]byte{"keepalived.yaml": bad})
			if len(taken) != tt.pods || len(compare(t, bad, taken)) == 0 {
				t.Errorf("kubelet reads %d pods, and no difference is found", len(taken))
			}
		})
	}
}
