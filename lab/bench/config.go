package bench

import (
	"log/slog"
	"time"

	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// Config says what to measure.
type Config struct {
	Cluster  *render.Cluster
	Programs lab.Programs
	// Dir is a directory for the files of the clusters, which are removed.
	Dir       string
	Profiles  []Profile
	Scenarios []Scenario
	// Runs is how often each scenario happens to each profile.
	Runs int
	// Seed decides at which moments between two adverts things happen.
	Seed uint64
	// Saturate is how long all cores are kept busy by the scenario of that name.
	Saturate time.Duration
	// Log gets what happens in the clusters; nil for nobody.
	Log *slog.Logger
	// Progress is told what is done now; it may be nil.
	Progress func(string)
}

// demo is a cluster of documentation addresses: RFC 5737.
const demo = `apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
networking:
  machineNetwork:
  - cidr: 192.0.2.0/24
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 2
platform:
  baremetal:
    apiVIPs: [192.0.2.5]
    ingressVIPs: [192.0.2.6]
    loadBalancer:
      type: UserManaged
`

// Demo is the cluster that is measured where no other is given.
func Demo() (*render.Cluster, error) {
	c, problems, err := render.Load(render.Sources{InstallConfig: render.File{Name: "demo", Data: []byte(demo)}}, render.Options{})
	if err != nil {
		return nil, err
	}
	return c, problems.Err()
}

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
