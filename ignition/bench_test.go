package ignition

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// pools returns three bundles of one cluster as rendered: 18 files and 6 units, one file of 3
// KB with the cluster's own facts.
func pools(cluster int) []Bundle {
	own := []byte(strings.Repeat(fmt.Sprintf("- name: node%d\n  address: 192.0.2.%d\n", cluster, cluster%250), 80))
	var bundles []Bundle
	yes := true
	for _, role := range []string{"bootstrap", "master", "worker"} {
		b := Bundle{Role: role, Files: []File{{"/etc/kubernetes/cluster.yaml", 0o644, own}}}
		for i := range 17 {
			b.Files = append(b.Files, File{fmt.Sprintf("/etc/kubernetes/static-pod-resources/%d", i), 0o644, shared[i]})
		}
		for i := range 6 {
			b.Units = append(b.Units, Unit{Name: fmt.Sprintf("vipgen%d.service", i), Enabled: &yes,
				Contents: "[Service]\nExecStart=/bin/true\n" + strings.Repeat("# why\n", 100) + "\n[Install]\nWantedBy=multi-user.target\n"})
		}
		bundles = append(bundles, b)
	}
	return bundles
}

var shared = func() (c [17][]byte) {
	for i := range c {
		c[i] = bytes.Repeat(fmt.Appendf(nil, "{{ if .Node%d }}\n  text: \"x\"\n{{ end }}\n", i), 80)
	}
	return c
}()

func encodeCluster(b *testing.B, e *Encoder, cluster int) {
	for _, bundle := range pools(cluster) {
		if _, err := e.MachineConfig(bundle, Metadata{Name: "99-" + bundle.Role + "-vipgen"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeCluster encodes the three pools of one more cluster; the target is less than
// 0.4 ms.
func BenchmarkEncodeCluster(b *testing.B) {
	e := NewEncoder(Target{OpenShift, "4.16"})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		encodeCluster(b, e, i)
	}
}

// BenchmarkEncodeFirstCluster measures the cost for a single run of the program.
func BenchmarkEncodeFirstCluster(b *testing.B) {
	for b.Loop() {
		encodeCluster(b, NewEncoder(Target{OpenShift, "4.16"}), 0)
	}
}
