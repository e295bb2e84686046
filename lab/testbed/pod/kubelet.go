package pod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// relist is the interval in which kubelet lists its manifests without a notification.
const relist = 20 * time.Second

// Kubelet runs the static pods of a host.
type Kubelet struct {
	Host *host.Host
	// Images are the available images by name.
	Images map[string]container.Image
	// BackOff is the back-off of restarts, kubeletBackOff if zero.
	BackOff BackOff
	// Log receives events of pods and containers.
	Log *slog.Logger

	mu   sync.Mutex
	pods map[string]*Pod // by file name
}

// Run runs a pod for each manifest in /etc/kubernetes/manifests. A manifest that is added, changed
// or removed starts, replaces or stops its pod. When ctx ends, Run kills all containers and returns
// when they have ended; it can be called again, as after a reboot.
func (k *Kubelet) Run(ctx context.Context) error {
	done, err := k.Start(ctx)
	if err != nil {
		return err
	}
	return <-done
}

// Start calls Run in the background: it returns when the pods of the existing manifests were
// started. done receives Run's error.
func (k *Kubelet) Start(ctx context.Context) (done <-chan error, err error) {
	if k.BackOff == (BackOff{}) {
		k.BackOff = kubeletBackOff()
	}
	dir := k.Host.Path(v1alpha1.ManifestDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	watch, err := fsnotify.NewWatcher()
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w: the kernel gives out no more than fs.inotify.max_user_instances, see sysctl(8)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	if err := watch.Add(dir); err != nil {
		watch.Close()
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := k.sync(ctx, dir); err != nil {
		cancel()
		k.wait()
		watch.Close()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		defer watch.Close()
		err := k.follow(ctx, dir, watch)
		cancel()
		k.wait()
		if err != nil {
			k.Log.Error("kubelet ended", "host", k.Host.Name, "error", err)
		}
		ended <- err
	}()
	return ended, nil
}

// follow updates the pods with each change of a manifest until ctx ends.
func (k *Kubelet) follow(ctx context.Context, dir string, watch *fsnotify.Watcher) error {
	tick := time.NewTicker(relist)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watch.Errors:
			return err
		case <-watch.Events:
		case <-tick.C:
		}
		if err := k.sync(ctx, dir); err != nil {
			return err
		}
	}
}

// wait returns when no container is left.
func (k *Kubelet) wait() {
	for _, p := range k.Pods() {
		<-p.gone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = nil
}

// sync starts and stops pods to match the manifests.
func (k *Kubelet) sync(ctx context.Context, dir string) error {
	manifests, err := k.manifests(dir)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods == nil {
		k.pods = map[string]*Pod{}
	}
	for file, p := range k.pods {
		if manifests[file] == nil {
			p.stop()
			if p.ended() {
				delete(k.pods, file)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(manifests)) {
		fresh, old := manifests[file], k.pods[file]
		if old != nil && old.UID == fresh.UID && !old.stopping() {
			continue
		}
		if old != nil {
			old.stop()
			fresh.after = old.gone
		}
		k.pods[file] = fresh
		go fresh.run(ctx)
	}
	return nil
}

// manifests reads the directory. It skips a manifest that cannot be read.
func (k *Kubelet) manifests(dir string) (map[string]*Pod, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]*Pod{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p, err := k.newPod(data)
		if err != nil {
			k.Log.Error("invalid manifest ignored", "host", k.Host.Name, "file", e.Name(), "error", err)
			continue
		}
		out[e.Name()] = p
	}
	return out, nil
}

// Pods returns the pods of the manifests, and those that are stopping, sorted by file name.
func (k *Kubelet) Pods() []*Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*Pod
	for _, file := range slices.Sorted(maps.Keys(k.pods)) {
		if p := k.pods[file]; !p.ended() {
			out = append(out, p)
		}
	}
	return out
}

// Pod returns the pod whose manifest has a name.
func (k *Kubelet) Pod(name string) (*Pod, error) {
	for _, p := range k.Pods() {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s has no pod %s", k.Host.Name, name)
}

// Container returns a container of a pod.
func (k *Kubelet) Container(pod, name string) (*Container, error) {
	p, err := k.Pod(pod)
	if err != nil {
		return nil, err
	}
	for _, c := range p.Containers {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s has no container %s in pod %s", k.Host.Name, name, pod)
}
