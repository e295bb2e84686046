package render

import (
	"bytes"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

const previewConfig = `apiVersion: v1
baseDomain: example.com
metadata: {name: racks}
networking: {machineNetwork: [{cidr: 192.0.2.0/26}, {cidr: 192.0.2.64/26}]}
controlPlane: {replicas: 3}
platform:
  baremetal:
    apiVIPs: [198.51.100.5]
    ingressVIPs: [198.51.100.6]
    bgpVIPConfig:
      localASN: 64512
      communities: ["64512:100"]
      peers:
      - {peerAddress: 192.0.2.1, peerASN: 64601, password: hush, bfdEnabled: true, holdTime: 90s}
    hosts:
    - name: master-0
    - name: master-1
    - name: master-2
      bgpPeers: [{peerAddress: 192.0.2.65, peerASN: 64602, ebgpMultiHop: true}]
`

// TestPreviewOfOpenShift: bgpVIPConfig is read as it is, and its password reaches nothing.
func TestPreviewOfOpenShift(t *testing.T) {
	vip := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {announce: bgp}\n"
	c, list, err := Load(Sources{InstallConfig: File{Name: "ic.yaml", Data: []byte(previewConfig)}, VIPConfig: &File{Name: "vipgen.yaml", Data: []byte(vip)}}, Options{})
	testkit.Must(t, err)
	text := ""
	for _, p := range list {
		text += p.String() + "\n"
	}
	testkit.Contains(t, text, "ic.yaml:14:60: warning: platform.baremetal.bgpVIPConfig.peers[0].password", "the file /etc/vipgen/bgp/192.0.2.1 on the nodes")
	testkit.Lacks(t, text, "hush")
	bundles, err := c.Bundles()
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, b := range bundles {
		for _, f := range b.Files {
			seen[f.Path] = true
			if bytes.Contains(f.Contents, []byte("hush")) {
				t.Errorf("%s has the password", f.Path)
			}
		}
	}
	for _, path := range []string{"/etc/kubernetes/manifests/bgp.yaml", "/etc/kubernetes/manifests/keepalived.yaml"} { // the latter instead of OpenShift's
		testkit.Equal(testkit.In(t, path), true, seen[path])
	}
	b := &c.Config.Spec.BGP
	testkit.Equal(t, 2, len(b.Peers))
	testkit.Equal(t, 255, b.Peers[0].Multihop)
	testkit.Equal(t, "/etc/vipgen/bgp/192.0.2.1", b.Peers[1].PasswordFile)
	testkit.Equal(t, []string{"master-0", "master-1"}, b.Peers[1].Nodes.Names)
	testkit.Equal(t, []string{"master-2"}, b.Peers[0].Nodes.Names)
}
