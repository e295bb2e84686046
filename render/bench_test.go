package render

import (
	"fmt"
	"testing"
)

const benchInstallConfig = `apiVersion: v1
baseDomain: example.com
metadata:
  name: cluster-%d
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 10.%d.%d.0/24
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 3
platform:
  %s:
    apiVIPs:
    - 10.%[2]d.%[3]d.10
    ingressVIPs:
    - 10.%[2]d.%[3]d.11
    loadBalancer:
      type: UserManaged
pullSecret: '{"auths":{}}'
sshKey: ssh-ed25519 AAAA
`

func benchInput(n int) []byte {
	platforms := []string{"baremetal", "vsphere", "openstack", "nutanix"}
	return fmt.Appendf(nil, benchInstallConfig, n, n/256%256, n%256, platforms[n%len(platforms)])
}

// BenchmarkClusters renders MachineConfigs, Ignition and manifests of many different clusters
// with three pools through one renderer: clusters per second must not decrease as their number
// grows.
func BenchmarkClusters(b *testing.B) {
	want := Want{Formats: []Format{FormatMachineConfig, FormatIgnition}}
	for _, clusters := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			for b.Loop() {
				r := &Renderer{}
				for n := range clusters {
					c, list, err := Load(Sources{InstallConfig: File{Name: "install-config.yaml", Data: benchInput(n)}}, Options{})
					if err != nil {
						b.Fatal(list)
					}
					if files, err := r.Tree(c, want); err != nil || len(files) != 9 {
						b.Fatal(len(files), err)
					}
				}
			}
			b.ReportMetric(float64(clusters*b.N)/b.Elapsed().Seconds(), "clusters/s")
		})
	}
}
