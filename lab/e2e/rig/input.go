package rig

// InstallConfig returns the install-config of a cluster on bare metal with three control-plane
// nodes and two workers, on one network (CIDR), with a VIP for the API and one for ingress.
// balancer is the loadBalancer type.
func InstallConfig(network, api, ingress, balancer string) string {
	return `apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
networking:
  machineNetwork:
  - cidr: ` + network + `
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 2
platform:
  baremetal:
    apiVIPs: [` + api + `]
    ingressVIPs: [` + ingress + `]
    loadBalancer:
      type: ` + balancer + `
`
}
