package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
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
		// For a static pod kubelet uses only the number of the priority: that of the class.
		if !pod.Spec.HostNetwork || pod.Spec.PriorityClassName != "system-node-critical" || pod.Spec.Priority == nil || *pod.Spec.Priority != 2_000_001_000 ||
			!slices.Equal(pod.Spec.Tolerations, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}) {
			t.Errorf("%s does not run everywhere, first and on the host's network", p)
		}
		for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			checkContainer(t, p, &pod, &c)
			if probe := c.LivenessProbe; i >= len(pod.Spec.InitContainers) && (probe == nil || probe.Exec == nil || !slices.Contains(probe.Exec.Command, "probe")) {
				t.Errorf("%s: container %s has the liveness probe %+v", p, c.Name, probe)
			}
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
	if limited := len(c.Resources.Limits) > 0; c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || limited != (c.Name == "mdns-publisher") || !c.Resources.Limits.Cpu().IsZero() {
		t.Errorf("%s: container %s has requests %v and limits %v", path, c.Name, c.Resources.Requests, c.Resources.Limits)
	}
	if !strings.HasSuffix(c.Command[0], "/vipgen-agent") && !strings.HasSuffix(c.Command[0], "/vipgen-bgp") {
		t.Errorf("%s: container %s runs %q", path, c.Name, c.Command)
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

// marker occurs in every secret of every case.
const marker = "hunter2"

// checkSecrets: no secret of the input is in any output, encoded forms
// included.
func checkSecrets(t *testing.T, c clusterCase, r result) {
	secrets := []string{"^pullSecret", "^sshKey"}
	switch filepath.Base(c.input(t)) {
	case "clusterinstance.yaml":
		secrets = []string{`^  \.dockerconfigjson`, "^  sshPublicKey"}
	case "agentclusterinstall.yaml", "siteconfig.yaml":
		secrets = []string{"^  sshPublicKey"}
	}
	input := testkit.ReadFile(t, c.input(t))
	for _, field := range secrets {
		if !regexp.MustCompile(`(?m)` + field + `: .*` + marker).Match(input) {
			t.Errorf("%s of the input does not hold the marker %q", field, marker)
		}
	}
	clean := func(what string, data []byte) {
		if bytes.Contains(bytes.ToLower(data), []byte(marker)) {
			t.Errorf("%s holds a secret of the input", what)
		}
	}
	clean("the report", r.validate)
	for path, data := range r.rendered {
		clean(path, data)
		if strings.HasPrefix(path, "machineconfigs/") || strings.HasPrefix(path, "ignition/") {
			for _, f := range decodeData(t, path, data).Files {
				clean(path+" "+f.Path, f.Contents)
			}
		}
	}
	for node, all := range r.previews {
		for path, data := range all {
			clean("preview of "+node+" "+path, data)
		}
	}
}

// checkVIPs: only cluster.yaml contains the VIPs, so that a change of a VIP changes one file.
func checkVIPs(t *testing.T, r result) {
	var vips []string
	for _, g := range r.cluster(t).Spec.Groups {
		for _, a := range g.VIPs {
			vips = append(vips, regexp.QuoteMeta(a.String()))
		}
	}
	if r.cluster(t).Spec.LoadBalancer == v1alpha1.LoadBalancerNone {
		testkit.Empty(t, vips)
		return
	}
	vip := regexp.MustCompile(`(?:^|[^0-9a-f.:])(?:` + strings.Join(vips, "|") + `)(?:$|[^0-9a-f.:])`)
	for path, data := range r.rendered {
		form, _, _ := strings.Cut(path, "/")
		if form != "files" && form != "manifests" {
			continue // encoded forms of the same
		}
		if !strings.HasSuffix(path, v1alpha1.ClusterConfigPath) && vip.Match(data) {
			t.Errorf("%s holds a VIP", path)
		}
		if strings.HasSuffix(path, v1alpha1.ClusterConfigPath) && !vip.Match(data) {
			t.Errorf("%s holds no VIP", path)
		}
	}
}

// escaped matches template delimiters that are escaped for a second template.
var escaped = regexp.MustCompile("{{-? *[\"'`]+ *{{|{{-? *[\"'`]}}|}}[\"'`] *-?}}|{{ *printf \"{{")

// checkDelimiters: nothing in the output is a template of a template.
func checkDelimiters(t *testing.T, r result) {
	for path, data := range r.rendered {
		if !bytes.Contains(data, []byte("{{")) && !bytes.Contains(data, []byte("}}")) {
			continue // the expression takes much longer over encoded files
		}
		if found := escaped.Find(data); found != nil {
			t.Errorf("%s has escaped delimiters: %q", path, found)
		}
	}
}

const (
	unitDir   = "etc/systemd/system/"
	roleLabel = "machineconfiguration.openshift.io/role"
	workerMC  = "99-worker-vipgen"
)

// plain lays a bundle out like vipgen's plain files.
func plain(b ignition.Bundle) files {
	out := files{}
	for _, f := range b.Files {
		out[f.Path[1:]] = f.Contents
	}
	for _, u := range b.Units {
		out[unitDir+u.Name] = []byte(u.Contents)
	}
	return out
}

func same(t *testing.T, what string, got, want files) {
	t.Helper()
	testkit.Equal(testkit.In(t, what), want, got)
}

// checkMachineConfigs: each decodes strictly, and the operator's merge of a pool's
// MachineConfigs equals the pool's plain files.
func checkMachineConfigs(t *testing.T, r result) {
	byName := map[string]mcfgv1.MachineConfig{}
	for path, data := range r.rendered.below("machineconfigs") {
		var mc mcfgv1.MachineConfig
		strict(t, path, data, &mc)
		if mc.APIVersion != mcfgv1.GroupVersion.String() || mc.Kind != "MachineConfig" || path != mc.Name+".yaml" {
			t.Errorf("%s is %s %s %s", path, mc.APIVersion, mc.Kind, mc.Name)
		}
		byName[mc.Name] = mc
	}
	for _, pool := range r.pools() {
		if pool == v1alpha1.RoleBootstrap {
			if _, ok := byName["99-bootstrap-vipgen"]; ok {
				t.Error("there is a MachineConfig for the bootstrap host, which has no pool")
			}
			continue
		}
		got := files{}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			role := byName[name].Labels[roleLabel]
			if role == pool || role == v1alpha1.RoleWorker && inherits(pool) {
				maps.Copy(got, plain(decode(t, r, "machineconfigs/"+name+".yaml")))
			}
		}
		same(t, "pool "+pool, got, r.rendered.below("files/"+pool))
		checkOwnMachineConfig(t, r, pool, byName)
	}
}

// inherits reports whether a pool is a custom one, whose nodes get the worker's MachineConfigs
// too; of two files with one path the one in the last merged MachineConfig wins. The pool's own
// comes last by its name up to OpenShift 4.14, and by its pool from 4.15 on (hard case 50).
func inherits(pool string) bool {
	switch pool {
	case v1alpha1.RoleMaster, v1alpha1.RoleArbiter, v1alpha1.RoleWorker:
		return false
	}
	return true
}

// checkOwnMachineConfig: a pool has one MachineConfig, which is merged after the operator's
// own, and after the worker's if it inherits that.
func checkOwnMachineConfig(t *testing.T, r result, pool string, byName map[string]mcfgv1.MachineConfig) {
	var own []string
	for name, mc := range byName {
		if mc.Labels[roleLabel] == pool {
			own = append(own, name)
		}
	}
	if len(own) != 1 {
		t.Errorf("pool %s has the MachineConfigs %q, want one", pool, own)
		return
	}
	if !strings.HasPrefix(own[0], "99-") {
		t.Errorf("%s does not sort after the operator's own", own[0])
	}
	if inherits(pool) {
		if own[0] <= workerMC {
			t.Errorf("%s does not sort after %s", own[0], workerMC)
		}
		for path, data := range plain(decode(t, r, "machineconfigs/"+own[0]+".yaml")) {
			if string(r.rendered["files/worker/"+path]) == string(data) {
				t.Errorf("%s repeats %s of the worker pool", own[0], path)
			}
		}
	}
}

// checkIgnition: the real engine writes each pool's plain files, and otherwise only which units
// are enabled.
func checkIgnition(t *testing.T, r result) {
	const preset = "etc/systemd/system-preset/20-ignition.preset"
	for _, pool := range r.pools() {
		config := r.rendered["ignition/"+pool+".ign"]
		root := daemon.Ignition(t, config)
		got := readTree(t, root)
		want := maps.Clone(r.rendered.below("files/" + pool))
		enabled := ""
		for _, u := range decode(t, r, "ignition/"+pool+".ign").Units {
			if u.Enabled != nil && *u.Enabled {
				enabled += fmt.Sprintf("enable %s\n", u.Name)
			}
		}
		want[preset] = []byte(enabled)
		same(t, "what Ignition writes for pool "+pool, got, want)
		for path := range got {
			info, err := os.Stat(filepath.Join(root, path))
			testkit.Must(t, err)
			testkit.Equal(testkit.In(t, pool, path), 0o644, info.Mode())
		}
	}
}

// checkButane: Butane itself translates each pool's config to the same files.
func checkButane(t *testing.T, r result) {
	for _, pool := range r.pools() {
		name := path.Join("butane", pool+".bu")
		data, report, err := butane.TranslateBytes(r.rendered[name], common.TranslateBytesOptions{})
		if err != nil || len(report.Entries) > 0 {
			t.Errorf("%s: %v\n%s", name, err, report.String())
			continue
		}
		same(t, name, plain(decodeData(t, name, data)), r.rendered.below("files/"+pool))
	}
}
