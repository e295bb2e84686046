package pod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Pod is a static pod of a host.
type Pod struct {
	Name, Namespace, UID string
	// Init and Containers are in the manifest's order.
	Init, Containers []*Container

	kubelet  *Kubelet
	manifest *corev1.Pod
	after    <-chan struct{} // the pod that this one replaces has gone
	stopped  chan struct{}
	stopOnce sync.Once
	gone     chan struct{}
	places   map[string]string // its volumes
}

func (k *Kubelet) newPod(manifest []byte) (*Pod, error) {
	m, err := Read(manifest)
	if err != nil {
		return nil, err
	}
	p := &Pod{
		Name: m.Name, Namespace: m.Namespace, UID: uid(manifest, k.Host.Name),
		kubelet: k, manifest: m, stopped: make(chan struct{}), gone: make(chan struct{}),
	}
	for i := range m.Spec.InitContainers {
		p.Init = append(p.Init, newContainer(p, &m.Spec.InitContainers[i]))
	}
	for i := range m.Spec.Containers {
		p.Containers = append(p.Containers, newContainer(p, &m.Spec.Containers[i]))
	}
	for _, c := range append(p.Init, p.Containers...) {
		if _, ok := k.Images[c.spec.Image]; !ok {
			return nil, fmt.Errorf("there is no image %q", c.spec.Image)
		}
	}
	return p, nil
}

// Gone is closed when nothing is left of the pod.
func (p *Pod) Gone() <-chan struct{} { return p.gone }

// RunsFrom says whether the pod is that of a manifest, to the byte.
func (p *Pod) RunsFrom(manifest []byte) bool { return p.UID == uid(manifest, p.kubelet.Host.Name) }

// dir is where the pod's own volumes are, on this machine.
func (p *Pod) dir() string { return p.kubelet.Host.Path("/var/lib/kubelet/pods/" + p.UID) }

// logDir is where the logs of its containers are, on the host.
func (p *Pod) logDir() string {
	return fmt.Sprintf("/var/log/pods/%s_%s-%s_%s", p.Namespace, p.Name, p.kubelet.Host.Name, p.UID)
}

func (p *Pod) grace() time.Duration {
	if s := p.manifest.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// stop has the pod end within its grace period.
func (p *Pod) stop() { p.stopOnce.Do(func() { close(p.stopped) }) }

func (p *Pod) stopping() bool { return closed(p.stopped) }
func (p *Pod) ended() bool    { return closed(p.gone) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run is the pod's life. It ends gracefully after stop, and at once with ctx.
func (p *Pod) run(ctx context.Context) {
	defer close(p.gone)
	if p.after != nil {
		<-p.after
	}
	// A pod that stops keeps its containers' contexts until they have ended.
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.stopped:
			cancel()
		case <-starting.Done():
		}
	}()
	if p.prepare(starting) && p.initialize(ctx, starting) {
		var all sync.WaitGroup
		for _, c := range p.Containers {
			all.Go(func() { c.keep(ctx, starting) })
		}
		all.Wait()
	}
	if ctx.Err() != nil {
		return // a reboot: the pod comes back to its volumes
	}
	if err := removeVolumes(p.kubelet.Host, p.dir(), p.manifest.Spec.Volumes); err != nil {
		p.kubelet.Log.Error("what a pod left cannot be removed", "host", p.kubelet.Host.Name, "pod", p.Name, "error", err)
	}
	p.event("the pod is gone")
}

// prepare waits until all volumes are there.
func (p *Pod) prepare(ctx context.Context) bool {
	for said := ""; ctx.Err() == nil; {
		var err error
		if p.places, err = volumes(p.kubelet.Host, p.dir(), p.manifest.Spec.Volumes); err == nil {
			err = p.copyFiles()
		}
		if err == nil {
			return true
		}
		if err.Error() != said {
			said = err.Error()
			p.kubelet.Log.Error("a pod waits for its volumes", "host", p.kubelet.Host.Name, "pod", p.Name, "error", err)
		}
		pause(ctx, time.Second)
	}
	return false
}

// hostFiles are what every container of a pod gets as it was on the host when the
// pod started.
var hostFiles = []string{"/etc/hosts", "/etc/resolv.conf"}

func (p *Pod) copyFiles() error {
	for _, path := range hostFiles {
		data, err := p.kubelet.Host.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(p.dir(), 0o755)
		}
		if err == nil {
			err = os.WriteFile(p.copyOf(path), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyOf is where the pod's copy of a file of the host is, on this machine.
func (p *Pod) copyOf(path string) string {
	return filepath.Join(p.dir(), strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
}

// initialize runs the init containers, one after another, until each has ended
// well.
func (p *Pod) initialize(ctx, starting context.Context) bool {
	for _, c := range p.Init {
		if !c.complete(ctx, starting) {
			return false
		}
	}
	return true
}

func (p *Pod) event(what string, args ...any) {
	p.kubelet.Log.Info(what, append([]any{"host", p.kubelet.Host.Name, "pod", p.Name}, args...)...)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// run runs a program of this machine in all namespaces of the host.
func run(h *host.Host, name string, args ...string) error {
	out, err := h.Exec(context.Background(), name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", filepath.Base(name), h.Name, err, out)
	}
	return nil
}
