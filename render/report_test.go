package render_test

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// Warnings about unpinned images are last, once, with a position; those about old spellings
// appear once per file.
func TestUnpinnedImagesComeLast(t *testing.T) {
	const text = `apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
imageContentSources: [{source: quay.io/openshift, mirrors: [registry.example.com/openshift]}]
networking: {machineCIDR: 192.0.2.0/24}
platform: {baremetal: {apiVIP: 192.0.2.2, ingressVIPs: [192.0.2.3]}}
`
	_, list, err := render.Load(render.Sources{InstallConfig: render.File{Name: "ic.yaml", Data: []byte(text)}}, render.Options{})
	testkit.Must(t, err)
	want := `ic.yaml:4:1: warning: imageContentSources: found an old spelling, expected imageDigestSources (also networking.machineCIDR on line 5: machineNetwork; platform.baremetal.apiVIP on line 6: apiVIPs) [deprecated]
ic.yaml:4:23: warning: imageContentSources[0]: found tags for agent, keepalived, haproxy, coredns, expected digests, as mirrors of the install-config work by digest only (give images in vipgen.yaml, or --release-info; see 'vipgen images') [unpinned-image]`
	testkit.Equal(t, want, list.Error())
}
