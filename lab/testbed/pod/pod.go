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
	after    <-chan struct{} // closed when the replaced pod is gone
	stopped  chan struct{}
	stopOnce sync.Once
	gone     chan struct{}
	places   map[string]string // of its volumes
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

// Gone returns a channel that is closed when nothing is left of the pod.
func (p *Pod) Gone() <-chan struct{} { return p.gone }

// RunsFrom reports whether the pod's manifest has exactly this content.
func (p *Pod) RunsFrom(manifest []byte) bool { return p.UID == uid(manifest, p.kubelet.Host.Name) }

// dir returns the directory of the pod's own volumes on this machine.
func (p *Pod) dir() string { return p.kubelet.Host.Path("/var/lib/kubelet/pods/" + p.UID) }

// logDir returns the directory of its containers' logs on the host.
func (p *Pod) logDir() string {
	return fmt.Sprintf("/var/log/pods/%s_%s-%s_%s", p.Namespace, p.Name, p.kubelet.Host.Name, p.UID)
}

func (p *Pod) grace() time.Duration {
	if s := p.manifest.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// stop starts to stop the pod within its grace period.
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

// run runs the pod until its end: gracefully after stop, and at once with ctx.
func (p *Pod) run(ctx context.Context) {
	defer close(p.gone)
	if p.after != nil {
		<-p.after
	}
	// A stopping pod keeps its containers' contexts until they have ended.
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
		return // a reboot: the pod keeps its volumes
	}
	if err := removeVolumes(p.kubelet.Host, p.dir(), p.manifest.Spec.Volumes); err != nil {
		p.kubelet.Log.Error("cannot remove pod volumes", "host", p.kubelet.Host.Name, "pod", p.Name, "error", err)
	}
	p.event("the pod is gone")
}

// prepare waits until all volumes exist.
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
			p.kubelet.Log.Error("pod waits for its volumes", "host", p.kubelet.Host.Name, "pod", p.Name, "error", err)
		}
		pause(ctx, time.Second)
	}
	return false
}

// hostFiles are files of the host that every container gets as a copy from the start of the pod.
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

// copyOf returns the path on this machine of the pod's copy of a host's file.
func (p *Pod) copyOf(path string) string {
	return filepath.Join(p.dir(), strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
}

// initialize runs the init containers, one after another, until each has succeeded.
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

// pause waits for d or until ctx ends.
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
