package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
)

const policyObject = `{"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"},
"spec": {"nodeDisruptionPolicy": {
  "files": [
    {"path": "/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml", "actions": [{"type": "None"}]},
    {"path": "/etc/chrony.conf", "actions": [{"type": "Restart", "restart": {"serviceName": "chronyd.service"}}]},
    {"path": "/etc/app", "actions": [{"type": "Drain"}, {"type": "Reload", "reload": {"serviceName": "app.service"}}]},
    {"path": "/etc/app/quiet", "actions": [{"type": "None"}]},
    {"path": "/var/lib/kubelet/config.json", "actions": [{"type": "Reboot"}]}],
  "units": [{"name": "app.service", "actions": [{"type": "DaemonReload"}, {"type": "Restart", "restart": {"serviceName": "app.service"}}]}]}}}`

// TestEffects checks the rules of docs/upgrade.md.
func TestEffects(t *testing.T) {
	none, given := clusterDefaults("4.18"), parsePolicy([]byte(policyObject), "4.18")
	file := func(name string) Change { return Change{Kind: kindFile, Name: name} }
	unit := func(name string) Change { return Change{Kind: kindUnit, Name: name} }
	setting := func(name string) Change { return Change{Kind: kindSetting, Name: name} }
	tests := []struct {
		change Change
		// without a user's policy, and with one.
		none, given Effect
	}{
		{file(v1alpha1.ClusterConfigPath), Reboot, AgentReload},
		{file("/etc/kubernetes/manifests/keepalived.yaml"), Reboot, Reboot},
		{file("/etc/chrony.conf"), Reboot, Services},
		{file("/etc/app/main.conf"), Reboot, Drain},
		{file("/etc/app/quiet/x"), Reboot, Files},
		{file("/etc/application"), Reboot, Reboot},
		{file("/var/lib/kubelet/config.json"), Files, Reboot},
		{file("/etc/nmstate/openshift/a.yml"), Files, Files},
		{file("/etc/containers/policy.json"), Services, Services},
		{file("/etc/containers/registries.d/x.yaml"), Services, Services},
		{file("/etc/machine-config-daemon/no-reboot/containers-gpg.pub"), Services, Services},
		{file("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"), Services, Services},
		{file("/etc/containers/registries.conf"), Drain, Drain},
		{unit("app.service"), Reboot, Services},
		{unit("other.service"), Reboot, Reboot},
		{setting(ignition.SettingUsers), Files, Files},
		{setting(ignition.SettingKernelArguments), Reboot, Reboot},
		{setting(ignition.SettingExtensions), Reboot, Reboot},
		{setting(ignition.SettingKernelType), Reboot, Reboot},
		{setting(ignition.SettingOSImage), Reboot, Reboot},
		{setting(ignition.SettingMasks), Reboot, Reboot},
		{setting(settingVersion), Nothing, Nothing},
		{setting(ignition.SettingFIPS), Refused, Refused},
		{setting("storage.disks"), Refused, Refused},
		{setting("passwd.groups"), Refused, Refused},
	}
	for _, tt := range tests {
		for _, p := range []struct {
			name string
			policy
			want Effect
		}{{"none", none, tt.none}, {"given", given, tt.given}} {
			got, reasons := p.outcome([]Change{tt.change})
			if got != p.want || len(reasons) != 1 || reasons[0].Why == "" {
				t.Errorf("%s %s, policy %s: %s %v, want %s", tt.change.Kind, tt.change.Name, p.name, got, reasons, p.want)
			}
		}
	}
	// The worst of several counts, and is the one that has reasons.
	got, reasons := given.outcome([]Change{file(v1alpha1.ClusterConfigPath), file("/etc/chrony.conf"), file("/etc/app/a")})
	if got != Drain || len(reasons) != 1 || !strings.Contains(reasons[0].Why, "by the node disruption policy") {
		t.Errorf("several: %s %v", got, reasons)
	}
	if got, reasons := given.outcome(nil); got != Nothing || reasons != nil {
		t.Errorf("no change: %s %v", got, reasons)
	}
}

// The policy that the operator reports as in force overrides the one in the spec.
func TestPolicyInForce(t *testing.T) {
	object := strings.TrimSuffix(policyObject, "}") + `, "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": {"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]}}}}`
	if !json.Valid([]byte(object)) {
		t.Fatal("not JSON")
	}
	p := parsePolicy([]byte(object), "")
	for name, want := range map[string]bool{"/etc/a": true, "/etc/chrony.conf": true, "/etc/containers/policy.json": false} {
		if _, ok := p.file(name); ok != want {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyObject), "/etc/app/main.conf")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		p := parsePolicy(object, "")
		if e, _ := p.outcome([]Change{{Kind: kindFile, Name: name}}); e < Files || e > Reboot {
			t.Errorf("%s: %s", name, e)
		}
	})
}

// machineConfig returns a MachineConfig with files; a name that starts with "+" appends.
func machineConfig(name, role, notes string, files ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: %s\n  labels: {machineconfiguration.openshift.io/role: %s}\n", name, role)
	if notes != "" {
		fmt.Fprintf(&b, "  annotations: {%s: x}\n", notes)
	}
	b.WriteString("spec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n")
	for _, f := range files {
		path, text, _ := strings.Cut(f, "=")
		if rest, ok := strings.CutPrefix(path, "+"); ok {
			fmt.Fprintf(&b, "      - {path: %s, append: [{source: \"data:,%s\"}]}\n", rest, text)
			continue
		}
		fmt.Fprintf(&b, "      - {path: %s, contents: {source: \"data:,%s\"}}\n", path, text)
	}
	return b.String()
}

func clusterOf(t *testing.T, texts ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	testkit.Must(t, c.Add("all.yaml", []byte(strings.Join(texts, ""))))
	return c
}

func TestMerge(t *testing.T) {
	c := clusterOf(t,
		machineConfig("99-worker", "worker", "", "/etc/a=worker", "+/etc/log=two"),
		machineConfig("00-worker", "worker", "", "/etc/a=base", "/etc/b=base", "/etc/log=one"),
		machineConfig("99-worker-zz", "infra", "", "/etc/a=infra"),
		machineConfig("00-master", "master", "", "/etc/a=master"),
	)
	for pool, want := range map[string]map[string]string{
		"worker": {"/etc/a": "worker", "/etc/b": "base", "/etc/log": "onetwo"},
		"infra":  {"/etc/a": "infra", "/etc/b": "base", "/etc/log": "onetwo"},
		"master": {"/etc/a": "master"},
	} {
		got := merge(inPool(c.configs, pool, nameOrder))
		if len(got.files) != len(want) {
			t.Errorf("%s: %v", pool, got.files)
		}
		for path, text := range want {
			if string(got.files[path].Contents) != text {
				t.Errorf("%s: %s is %q, want %q", pool, path, got.files[path].Contents, text)
			}
		}
	}
	testkit.Equal(t, "master worker infra", strings.Join(pools(c.configs), " "))
}

// If a policy is part of the change itself, both outcomes are printed.
func TestNewPolicy(t *testing.T) {
	a := clusterOf(t, machineConfig("99-master-vipgen", "master", clusterAnnotation, v1alpha1.ClusterConfigPath+"=a"))
	b := clusterOf(t, machineConfig("99-master-vipgen", "master", clusterAnnotation, v1alpha1.ClusterConfigPath+"=b"), "---\n", policyObject)
	p := Compare(a, b).Pools[0]
	if p.Effect != AgentReload || p.Without == nil || *p.Without != Reboot {
		t.Errorf("%+v", p)
	}
	if p := Compare(b, a).Pools[0]; p.Effect != AgentReload {
		t.Errorf("a policy that is in force and not mentioned again: %+v", p)
	}
}
