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

// nodeObject returns a Node with what the agent reads, and as much besides as kubelet, the network,
// the operators and storage drivers add. The API server adds managedFields.
func nodeObject(i int) []byte {
	role := "worker"
	if i < controlPlane {
		role = "master"
	}
	labels := map[string]string{"node-role.kubernetes.io/" + role: ""}
	for n := range 35 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%d", n)] = "true"
	}
	var images []map[string]any
	for n := range 50 { // as many as kubelet reports
		name := fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064x", n)
		images = append(images, map[string]any{"names": []string{name, name}, "sizeBytes": 1<<28 + n})
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": nodeName(i), "labels": labels, "annotations": map[string]string{"example.com/others": strings.Repeat("x", 1500)},
		},
		"status": map[string]any{"addresses": addresses(i, nodeAddress(i)), "conditions": conditions(time.Now()), "images": images},
	})
	if err != nil {
		panic(err)
	}
	return data
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
