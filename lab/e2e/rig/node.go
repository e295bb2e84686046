package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
)

// Node is a machine with a kubelet.
type Node struct {
	*machine.Machine
	Containerd *machine.Service
	Kubelet    *machine.Kubelet
}

// Boot starts containerd and kubelet on a machine. If the test fails it logs their output.
func Boot(t testing.TB, m *machine.Machine, cfg machine.KubeletConfig, images ...string) Node {
	t.Helper()
	t.Cleanup(func() { showLogs(t, m) })
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	containerd, err := m.StartContainerd(ctx, ToolsImage)
	testkit.Must(t, err)
	for _, image := range images {
		testkit.Must(t, m.ImportImage(ctx, image))
	}
	k, err := m.StartKubelet(ctx, cfg)
	testkit.Must(t, err)
	return Node{m, containerd, k}
}

func showLogs(t testing.TB, m *machine.Machine) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(m.Dir(), "*.log")) // the pattern is well-formed
	for _, log := range logs {
		data, _ := os.ReadFile(log)
		lines := strings.Split(string(data), "\n")
		t.Logf("%s: the end of %s:\n%s", m.Name, filepath.Base(log), strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// Await waits for a condition of a static pod's container, and returns the container's status.
func (n Node) Await(t testing.TB, what, pod, container string, ok func(corev1.ContainerStatus) bool) corev1.ContainerStatus {
	t.Helper()
	var last string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		pods, err := n.Kubelet.Pods(t.Context())
		if err != nil {
			last = err.Error()
			continue
		}
		for _, p := range pods {
			if p.Name != pod+"-"+n.Name {
				continue
			}
			for _, s := range p.Status.ContainerStatuses {
				if s.Name == container && ok(s) {
					return s
				}
			}
			last = fmt.Sprintf("%+v", p.Status)
		}
	}
	t.Fatalf("%s: %s of pod %s is not %s: %s", n.Name, container, pod, what, last)
	panic("not reached")
}

// Running reports whether a container runs and is ready.
func Running(s corev1.ContainerStatus) bool { return s.State.Running != nil && s.Ready }

// ContainerID returns containerd's ID of a container.
func ContainerID(s corev1.ContainerStatus) string {
	return strings.TrimPrefix(s.ContainerID, "containerd://")
}

// Eventually waits for a condition.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
