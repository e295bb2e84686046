package cli

import (
	"path"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/yamllimit"
	"github.com/vipgen/vipgen/render"
)

// runningCluster returns the parts of a cluster that `vipgen migrate` uses, by the cluster.yaml in
// vipgen's MachineConfigs.
func runningCluster(files []render.File) (*render.Cluster, problem.List) {
	observed, list := importer.Observe(files)
	export := adopt.Export(files)
	c := &render.Cluster{OS: ignition.OpenShift, Version: observed.Release}
	for _, pool := range export.Pools() {
		for _, f := range export.VipgenItems(pool) {
			if f.Name != v1alpha1.ClusterConfigPath {
				continue
			}
			err := yamllimit.Bound([]byte(f.Text))
			var config *v1alpha1.ClusterConfig
			if err == nil {
				config, err = v1alpha1.LoadClusterConfig(f.From+":"+path.Base(f.Name), []byte(f.Text))
			}
			if err != nil {
				return nil, append(list, problem.Problem{Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "cluster.yaml as vipgen renders it"})
			}
			if c.Roles = append(c.Roles, pool); c.Config == nil || pool == v1alpha1.RoleMaster {
				c.Config = config
			}
		}
	}
	if c.Config == nil {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.MissingField, Found: "no MachineConfig of vipgen", Expected: "a cluster that runs vipgen", Hint: "'kubectl vipgen adopt' plans the change to vipgen"})
	}
	return c, list
}
