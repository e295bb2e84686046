package machine_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

const aliveFile = "/var/lib/alive/file"

// alivePod runs as long as a file of its node exists.
const alivePod = `apiVersion: v1
kind: Pod
metadata:
  name: alive
  namespace: kube-system
spec:
  hostNetwork: true
  containers:
  - name: alive
    image: ` + rig.ToolsImage + `
    command: [/usr/bin/dash, -c, "echo started; touch /alive/file; exec sleep infinity"]
    livenessProbe:
      exec: {command: [/usr/bin/cat, /alive/file]}
      initialDelaySeconds: 1
      periodSeconds: 1
      timeoutSeconds: 30
      failureThreshold: 1
    volumeMounts: [{name: alive, mountPath: /alive}]
  terminationGracePeriodSeconds: 1
  volumes: [{name: alive, hostPath: {path: /var/lib/alive, type: DirectoryOrCreate}}]
`

const aliveManifest = "/etc/kubernetes/manifests/alive.yaml"

// checkManifests: an invalid manifest ends the pod that it replaces, at the latest when kubelet
// next lists the manifests, and the pod returns with its manifest. Files are written as the
// operator does.
func checkManifests(t *testing.T, n rig.Node) {
	t.Helper()
	file := n.Path(aliveManifest)
	replace := func(text string) {
		hidden := filepath.Join(filepath.Dir(file), ".alive") // which kubelet ignores
		testkit.Must(t, os.WriteFile(hidden, []byte(text), 0o644))
		testkit.Must(t, os.Rename(hidden, file))
	}
	for _, tt := range []struct {
		name string
		end  func()
	}{
		{"emptied", func() { replace("") }},
		{"a comment", func() { replace("# No pod\n") }},
		{"deleted", func() { testkit.Must(t, os.Remove(file)) }},
	} {
		id := rig.ContainerID(n.Await(t, "running", "alive", "alive", rig.Running))
		start := time.Now()
		tt.end()
		rig.Eventually(t, tt.name+": the pod ends", func() bool {
			list, err := n.Processes(id)
			return err != nil || len(list) == 0
		})
		t.Logf("manifest %s: the pod ended after %v", tt.name, time.Since(start).Round(100*time.Millisecond))
		replace(alivePod)
	}
	n.Await(t, "running", "alive", "alive", rig.Running)
}

func config(ca *authority.Authority, i int) machine.KubeletConfig {
	return machine.KubeletConfig{CA: ca, NodeIPs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})}}
}

// Two machines each run a pod; kubelet restarts it when its probe fails, and a power loss of
// one machine does not affect the other.
func TestKubelet(t *testing.T) {
	ca, err := authority.New("signer")
	testkit.Must(t, err)
	network := daemon.NewNetwork(t)
	image := rig.ToolsArchive(t)
	var nodes []rig.Node
	for i := range 2 {
		m := rig.NewMachine(t, network, fmt.Sprintf("node-%d", i), fmt.Sprintf("192.0.2.1%d/24", i), map[string]string{"kubelet": rig.Tool(t, "kubelet")})
		// The file exists from the start: the first probe may precede the shell's command.
		for path, text := range map[string]string{aliveFile: "", aliveManifest: alivePod} {
			testkit.Must(t, m.Write(path, []byte(text)))
		}
		nodes = append(nodes, rig.Boot(t, m, config(ca, i), image))
	}
	first, second := nodes[0], nodes[1]
	before := first.Await(t, "running", "alive", "alive", rig.Running)
	other := second.Await(t, "running", "alive", "alive", rig.Running)

	testkit.Must(t, os.Remove(first.Path(aliveFile)))
	first.Await(t, "restarted", "alive", "alive", func(s corev1.ContainerStatus) bool {
		return rig.Running(s) && s.RestartCount > before.RestartCount && s.ContainerID != before.ContainerID
	})

	testkit.Must(t, first.PowerOff())
	rig.CheckTraces(t, first.Machine)
	if s := second.Await(t, "running", "alive", "alive", rig.Running); s.ContainerID != other.ContainerID || s.RestartCount != other.RestartCount {
		t.Errorf("the other machine's container is another one: %+v", s)
	}

	testkit.Must(t, first.PowerOn())
	first = rig.Boot(t, first.Machine, config(ca, 0))
	first.Await(t, "running after a reboot", "alive", "alive", func(s corev1.ContainerStatus) bool {
		return rig.Running(s) && s.ContainerID != before.ContainerID
	})
	checkManifests(t, second)
}
