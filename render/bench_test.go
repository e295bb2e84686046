package render

import (
	"fmt"
	"strings"
	"testing"
)

const benchInstallConfig = `apiVersion: v1
baseDomain: example.com
metadata:
  name: cluster-%d
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 192.0.2.0/24
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 3
platform:
  baremetal:
    apiVIPs:
    - 192.0.2.10
    ingressVIPs:
    - 192.0.2.11
    loadBalancer:
      type: UserManaged
pullSecret: '{"auths":{}}'
sshKey: ssh-ed25519 AAAA
`

// BenchmarkCluster is one cluster after another, each different, through one
// renderer: read, resolve, encode.
func BenchmarkCluster(b *testing.B) {
	r := &Renderer{}
	want := Want{Variant: "openshift", Formats: []Format{FormatMachineConfig, FormatIgnition}}
	n := 0
	for b.Loop() {
		n++
		text := fmt.Sprintf(benchInstallConfig, n)
		c, list, err := Load(Sources{InstallConfig: File{Name: "install-config.yaml", Data: []byte(text)}}, Options{})
		if err != nil {
			b.Fatal(list)
		}
		files, err := r.Tree(c, want)
		if err != nil || len(files) == 0 {
			b.Fatal(err)
		}
	}
	_ = strings.TrimSpace
}
