package golden

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
