package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
)

// Of the cluster: the first nodes are the control plane, and the others are
// compute nodes on other networks.
const (
	controlPlane = 3
	domain       = "demo.example.com"
)

func nodeName(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("master-%d", i)
	}
	return fmt.Sprintf("worker-%d.%s", i, domain)
}

func nodeAddress(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("192.168.111.%d", 20+i)
	}
	return fmt.Sprintf("10.32.%d.%d", i/200, i%200+1)
}

// addNodes registers nodes number from to to-1, as large as those of a cluster
// that has run for a while.
func addNodes(b *testing.B, api *daemon.APIServer, from, to int) {
	b.Helper()
	objects := make(chan []byte)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for object := range objects {
				api.Create("/api/v1/nodes", object)
			}
		})
	}
	for i := from; i < to; i++ {
		objects <- nodeObject(i)
	}
	close(objects)
	all.Wait()
}

// nodeObject returns a Node as kubelet, the cloud provider, OVN-Kubernetes, the machine config
// operator and storage drivers fill it. The API server adds managedFields.
func nodeObject(i int) []byte {
	name, role := nodeName(i), "worker"
	if i < controlPlane {
		role = "master"
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": name, "labels": nodeLabels(name, role), "annotations": nodeAnnotations(i),
		},
		"spec": map[string]any{"podCIDR": fmt.Sprintf("10.%d.%d.0/24", 128+i/256, i%256)},
		"status": map[string]any{
			"addresses":       addresses(i, nodeAddress(i)),
			"conditions":      conditions(time.Now()),
			"images":          images(),
			"capacity":        resources(),
			"allocatable":     resources(),
			"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": 10250}},
			"nodeInfo": map[string]any{
				"architecture": "amd64", "bootID": id(i), "containerRuntimeVersion": "cri-o://1.34.2",
				"kernelVersion": "5.14.0-570.el9.x86_64", "kubeProxyVersion": "", "kubeletVersion": "v1.34.2",
				"machineID": id(i), "operatingSystem": "linux", "osImage": "Red Hat Enterprise Linux CoreOS", "systemUUID": id(i),
			},
		},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func id(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

func nodeLabels(name, role string) map[string]string {
	labels := map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"node-role.kubernetes.io/" + role: "", "node.openshift.io/os_id": "rhel",
	}
	for i := range 30 { // of node feature discovery
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%d", i)] = "true"
	}
	return labels
}

func nodeAnnotations(i int) map[string]string {
	config := fmt.Sprintf("rendered-worker-%032d", 1)
	return map[string]string{
		"k8s.ovn.org/host-cidrs":                                 fmt.Sprintf(`["%s/24"]`, nodeAddress(i)),
		"k8s.ovn.org/l3-gateway-config":                          fmt.Sprintf(`{"default":{"mode":"shared","bridge-id":"br-ex","interface-id":"br-ex_%s","mac-address":"52:54:00:00:00:01","ip-addresses":["%s/24"],"next-hops":["192.168.111.1"],"node-port-enable":"true","vlan-id":"0"}}`, nodeName(i), nodeAddress(i)),
		"k8s.ovn.org/node-subnets":                               fmt.Sprintf(`{"default":["10.%d.%d.0/24"]}`, 128+i/256, i%256),
		"k8s.ovn.org/node-chassis-id":                            id(i),
		"machineconfiguration.openshift.io/currentConfig":        config,
		"machineconfiguration.openshift.io/desiredConfig":        config,
		"machineconfiguration.openshift.io/state":                "Done",
		"machineconfiguration.openshift.io/desiredDrain":         "uncordon-" + config,
		"machineconfiguration.openshift.io/lastAppliedDrain":     "uncordon-" + config,
		"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf(`{"csi.example.com":%q}`, id(i)),
		"volumes.kubernetes.io/controller-managed-attach-detach": "true",
	}
}

func addresses(i int, address string) []map[string]string {
	return []map[string]string{{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": nodeName(i)}}
}

func conditions(beat time.Time) (out []map[string]any) {
	for _, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		status := "False"
		if c == "Ready" {
			status = "True"
		}
		out = append(out, map[string]any{
			"type": c, "status": status, "reason": "KubeletHas" + c,
			"message":            "kubelet has posted the status of " + c,
			"lastHeartbeatTime":  beat.UTC().Format(time.RFC3339),
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	return out
}

// images returns 50 images, as many as kubelet reports.
func images() (out []map[string]any) {
	for i := range 50 {
		out = append(out, map[string]any{
			"names":     []string{"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + strings.Repeat(fmt.Sprintf("%02x", i), 32), fmt.Sprintf("registry.example.com/image-%d:v1.2.3", i)},
			"sizeBytes": 1<<28 + i,
		})
	}
	return out
}

func resources() map[string]string {
	return map[string]string{"cpu": "64", "memory": "263839892Ki", "pods": "250", "ephemeral-storage": "936104940Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
}
