package pod

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// quick is a back-off for tests.
var quick = BackOff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond, Reset: time.Hour}

// rig is a host with a kubelet.
type rig struct {
	*Kubelet
	t    *testing.T
	stop func()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	h, err := host.New(daemon.AddNode(t, daemon.NewNetwork(t), "node-0"), t.TempDir())
	testkit.Must(t, err)
	testkit.Cleanup(t, h.Close)
	r := &rig{t: t, Kubelet: &Kubelet{
		Host: h, BackOff: quick, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Images: map[string]container.Image{"debian": {Distribution: true}},
	}}
	r.start()
	return r
}

// start starts the kubelet; r.stop ends it, and so does the end of the test.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		testkit.Check(r.t, <-done)
	})
	r.t.Cleanup(r.stop)
}

func (r *rig) put(name, spec string) {
	r.t.Helper()
	testkit.Must(r.t, r.Host.Write(v1alpha1.ManifestDir+"/"+name+".yaml", manifest(name, spec)))
}

func manifest(name, spec string) []byte {
	return []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: test}\nspec:\n  hostNetwork: true\n" + spec)
}

func (r *rig) remove(name string) {
	r.t.Helper()
	testkit.Must(r.t, os.Remove(r.Host.Path(v1alpha1.ManifestDir+"/"+name+".yaml")))
}

func (r *rig) awaitContainer(pod, name string) *Container {
	r.t.Helper()
	var c *Container
	testkit.Await(r.t, "container "+name+" of pod "+pod, func() bool {
		found, err := r.Container(pod, name)
		if err != nil {
			return false
		}
		c = found
		return c.Status().Running
	})
	return c
}

func (r *rig) awaitLog(c *Container, want string) {
	r.t.Helper()
	testkit.Await(r.t, want+" in the log of "+c.Name, func() bool { return strings.Contains(c.Log(), want) })
}

// The container has the settings of the manifest: no more, no less.
func TestContainer(t *testing.T) {
	r := newRig(t)
	testkit.Must(t, r.Host.Write("/etc/there/file", []byte("of the host")))
	r.put("probe", `
  terminationGracePeriodSeconds: 120
  initContainers:
  - name: first
    image: debian
    command: [sh, -c, "echo one > /shared/order"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  - name: second
    image: debian
    command: [sh, -c, "echo two >> /shared/order"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  containers:
  - name: main
    image: debian
    command: [sh, -c]
    args:
    - |
      trap 'echo asked to end; exit 0' TERM
      echo order $(cat /shared/order)
      echo node $NODE $HOSTNAME $(hostname) pid $$
      echo caps $(grep -E 'Cap(Eff|Bnd|Inh)|NoNewPrivs' /proc/self/status)
      echo file $(cat /there/file)
      touch /there/x || echo read-only volume
      touch /x || echo read-only root
      echo 0 > /proc/sys/net/ipv4/ip_forward || echo read-only sysctl
      stat -f -c 'memory %T' /memory
      touch /made/by-me && echo made
      echo ready
      while :; do sleep 0.1; done
    env:
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [NET_ADMIN]}
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: there, mountPath: /there, readOnly: true}
    - {name: memory, mountPath: /memory}
    - {name: made, mountPath: /made}
  volumes:
  - {name: shared, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
  - {name: there, hostPath: {path: /etc/there, type: Directory}}
  - {name: made, hostPath: {path: /var/made, type: DirectoryOrCreate}}
`)
	c := r.awaitContainer("probe", "main")
	r.awaitLog(c, "ready")
	testkit.Contains(t, c.Log(),
		"order one two\n", "node node-0 node-0 node-0 pid 1\n", "file of the host\n",
		"CapInh: 0000000000000000 CapEff: 0000000000001000 CapBnd: 0000000000001000 NoNewPrivs: 1\n",
		"read-only volume\n", "read-only root\n", "read-only sysctl\n", "memory tmpfs\n", "made\n",
	)
	if _, err := os.Stat(r.Host.Path("/var/made/by-me")); err != nil {
		t.Error(err)
	}
	dir := c.pod.dir()
	gone := c.pod.Gone()
	r.remove("probe")
	<-gone
	if !strings.Contains(c.Log(), "asked to end\n") || c.Status().LastExit != 0 || c.Status().LastReason != reasonStopped {
		t.Errorf("it ended with %+v:\n%s", c.Status(), c.Log())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the pod's volumes are still there: %v", err)
	}
}

const sleeper = `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: debian
    command: [sh, -c, "echo up; while :; do sleep 0.1; done"]
    env: [{name: VERSION, value: "1"}]
`

// A container whose liveness probe fails is stopped and started again.
func TestLivenessProbe(t *testing.T) {
	r := newRig(t)
	r.put("probed", sleeper+`
    livenessProbe:
      exec: {command: [test, "!", -e, /sick/now]}
      periodSeconds: 1
      failureThreshold: 2
    volumeMounts: [{name: sick, mountPath: /sick}]
  volumes: [{name: sick, hostPath: {path: /sick, type: DirectoryOrCreate}}]
`)
	c := r.awaitContainer("probed", "main")
	testkit.Must(t, r.Host.Write("/sick/now", nil))
	testkit.Await(t, "a restart", func() bool { return c.Status().Restarts > 0 }) // the probe still fails
	if s := c.Status(); s.LastReason != reasonUnhealthy {
		t.Errorf("it ended with %+v", s)
	}
}

func TestRead(t *testing.T) {
	const head = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {hostNetwork: true, "
	const container = "{name: c, image: i, command: [x]"
	for in, want := range map[string]string{
		head + "containers: [" + container + "}]}}":                                             "",
		head + "containers: [" + container + ", comand: [y]}]}}":                                `unknown field "comand"`,
		head + "containers: [" + container + ", lifecycle: {}}]}}":                              "lifecycle is not supported",
		head + "containers: [" + container + ", volumeMounts: [{name: v, mountPath: /v}]}]}}":   "c mounts unknown volume v",
		head + "containers: [" + container + "}], volumes: [{name: v, configMap: {name: m}}]}}": "the kind of volume v is not supported",
		head + "restartPolicy: Never, containers: [" + container + "}]}}":                       "restartPolicy Never is not supported",
		head + "containers: []}}": "no containers",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [" + container + "}]}}":                    "a network of its own is not supported",
		head + "containers: [{name: c, image: i}]}}":                                                                    "the image's own command is not supported",
		head + "containers: [" + container + ", env: [{name: E, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}}": "source of E is not supported",
	} {
		_, err := Read([]byte(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestBackOff(t *testing.T) {
	b := kubeletBackOff()
	var r restarts
	now := time.Unix(0, 0)
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		at := b.next(&r, now)
		if at.Sub(now) != want*time.Second {
			t.Errorf("restart %d after %v, want %v", i+1, at.Sub(now), want*time.Second)
		}
		now = at
	}
	now = now.Add(11 * time.Minute)
	if at := b.next(&r, now); at != now {
		t.Errorf("after 11 minutes the restart is %v later", at.Sub(now))
	}
}
