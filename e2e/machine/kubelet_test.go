package machine

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/golden/daemon"

	"github.com/vipgen/vipgen/lab/authority"
)

const (
	toolsImage = "localhost/tools:1"
	aliveFile  = "/var/lib/alive/file"
)

// alivePod lives as long as a file of its node does.
const alivePod = `apiVersion: v1
kind: Pod
metadata:
  name: alive
  namespace: kube-system
spec:
  hostNetwork: true
  containers:
  - name: alive
    image: ` + toolsImage + `
    command: [/usr/bin/dash, -c, "echo started; touch /alive/file; exec sleep infinity"]
    securityContext:
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
    livenessProbe:
      exec: {command: [/usr/bin/cat, /alive/file]}
      initialDelaySeconds: 1
      periodSeconds: 1
      timeoutSeconds: 30
      failureThreshold: 1
    volumeMounts: [{name: alive, mountPath: /alive}]
  - name: plain
    image: ` + toolsImage + `
    command: [/usr/bin/sleep, infinity]
  terminationGracePeriodSeconds: 1
  volumes: [{name: alive, hostPath: {path: /var/lib/alive, type: DirectoryOrCreate}}]
`

// tool is a program that the project builds at a pinned version.
func tool(t *testing.T, name string) string {
	t.Helper()
	return program(t, "../../.cache/bin/"+name, "make e2e-tools")
}

// built is a program of vipgen's own.
func built(t *testing.T, name string) string {
	t.Helper()
	return program(t, "../../bin/"+name, "make build")
}

// program is a file that a command makes.
func program(t *testing.T, file, command string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not built: run `%s` (%v)", filepath.Base(file), command, err)
	}
	return path
}

// node is a machine with a kubelet.
type node struct {
	*Machine
	kubelet *Kubelet
}

// boot starts containerd and kubelet on a machine.
func boot(t *testing.T, m *Machine, cfg KubeletConfig, images ...string) node {
	t.Helper()
	t.Cleanup(func() { showLogs(t, m) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := m.StartContainerd(ctx, toolsImage); err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if err := m.ImportImage(ctx, image); err != nil {
			t.Fatal(err)
		}
	}
	k, err := m.StartKubelet(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return node{m, k}
}

func showLogs(t *testing.T, m *Machine) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(m.Dir(), "*.log")) // the pattern is good
	for _, log := range logs {
		data, _ := os.ReadFile(log)
		lines := strings.Split(string(data), "\n")
		t.Logf("%s: the end of %s:\n%s", m.Name, filepath.Base(log), strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// await waits for a pod's container, which it returns, to be as it should.
func (n node) await(t *testing.T, what, pod, container string, ok func(corev1.ContainerStatus) bool) corev1.ContainerStatus {
	t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		pods, err := n.kubelet.Pods(t.Context())
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

func running(s corev1.ContainerStatus) bool { return s.State.Running != nil && s.Ready }

// checkProcesses: what of a manifest's security context is in force can be read, and
// is told from what a container has without one.
func checkProcesses(t *testing.T, n node, alive corev1.ContainerStatus) {
	t.Helper()
	plain := n.await(t, "running", "alive", "plain", running)
	for _, tt := range []struct {
		status                         corev1.ContainerStatus
		capable, restricted, writeable bool
	}{{alive, false, true, false}, {plain, true, false, true}} {
		list, err := n.Processes(containerID(tt.status))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %+v, %v", tt.status.Name, list, err)
		}
		p := list[0]
		if p.Name != "sleep" || p.UID != 0 || p.NoNewPrivileges != tt.restricted || p.ReadOnlyRoot == tt.writeable {
			t.Errorf("%s: %+v", tt.status.Name, p)
		}
		for _, set := range []uint64{p.Bounding, p.Permitted, p.Effective} {
			if (set != 0) != tt.capable {
				t.Errorf("%s has the capabilities %x", tt.status.Name, set)
			}
		}
	}
	if _, err := n.Processes("absent"); err == nil {
		t.Error("a container that is not there has processes")
	}
}

func config(ca *authority.Authority, i int) KubeletConfig {
	return KubeletConfig{CA: ca, NodeIPs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})}}
}

// Two machines each run a pod; kubelet restarts it when its probe fails, and the
// power of one machine is no other's.
func TestKubelet(t *testing.T) {
	ca, err := authority.New("signer")
	if err != nil {
		t.Fatal(err)
	}
	network := daemon.NewNetwork(t)
	image := toolsArchive(t)
	var nodes []node
	for i := range 2 {
		m := newMachine(t, network, fmt.Sprintf("node-%d", i), fmt.Sprintf("192.0.2.1%d/24", i), map[string]string{"kubelet": tool(t, "kubelet")})
		if err := m.Write("/etc/kubernetes/manifests/alive.yaml", []byte(alivePod)); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, boot(t, m, config(ca, i), image))
	}
	first, second := nodes[0], nodes[1]
	before := first.await(t, "running", "alive", "alive", running)
	checkProcesses(t, first, before)
	other := second.await(t, "running", "alive", "alive", running)

	if err := os.Remove(first.Path(aliveFile)); err != nil {
		t.Fatal(err)
	}
	first.await(t, "restarted", "alive", "alive", func(s corev1.ContainerStatus) bool {
		return running(s) && s.RestartCount == 1 && s.ContainerID != before.ContainerID
	})

	if err := first.PowerOff(); err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces(t, first.Machine) {
		t.Errorf("without power there is %s", trace)
	}
	if s := second.await(t, "running", "alive", "alive", running); s.ContainerID != other.ContainerID || s.RestartCount != 0 {
		t.Errorf("the other machine's container is another one: %+v", s)
	}

	if err := first.PowerOn(); err != nil {
		t.Fatal(err)
	}
	first = boot(t, first.Machine, config(ca, 0))
	first.await(t, "running after a reboot", "alive", "alive", func(s corev1.ContainerStatus) bool {
		return running(s) && s.ContainerID != before.ContainerID
	})
}
