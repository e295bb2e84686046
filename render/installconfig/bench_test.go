package installconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/render/installconfig"
)

// manyHosts is a bare metal config with static addresses for n hosts, in the
// block style that people write.
func manyHosts(n int) []byte {
	var b strings.Builder
	b.WriteString(head + `networking:
  machineNetwork:
  - cidr: 10.0.0.0/16
controlPlane:
  name: master
  replicas: 3
pullSecret: '{"auths": {"registry.example.com": {"auth": "none"}}}'
platform:
  baremetal:
    apiVIPs:
    - 10.0.0.5
    ingressVIPs:
    - 10.0.0.7
    hosts:
`)
	for i := range n {
		fmt.Fprintf(&b, `    - name: worker-%d
      role: worker
      bmc:
        address: redfish-virtualmedia://bmc-%[1]d.example.com/redfish/v1/Systems/1
        username: admin
        password: none
      bootMACAddress: 52:54:00:00:00:%02[1]x
      rootDeviceHints:
        deviceName: /dev/disk/by-path/pci-0000:01:00.0-nvme-1
      networkConfig:
        interfaces:
        - name: eno1   # towards the rack switch
          type: ethernet
          state: up
          ipv4:
            enabled: true
            dhcp: false
            address:
            - ip: 10.0.1.%[1]d
              prefix-length: 16
          ipv6:
            enabled: false
        routes:
          config:
          - destination: 0.0.0.0/0
            next-hop-address: 10.0.0.1
            next-hop-interface: eno1
`, i+1)
	}
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	for _, hosts := range []int{0, 2, 10} {
		data := manyHosts(hosts)
		b.Run(fmt.Sprintf("hosts=%d,bytes=%d", hosts, len(data)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := installconfig.Read("ic.yaml", data); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
