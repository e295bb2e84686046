package facts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/vipgen/vipgen/agent/nodeip"
)

// resyncEvery is the interval at which a change is assumed without a notification: a
// directory may be new or replaced, and not watched.
const resyncEvery = 30 * time.Second

// Watch calls changed, at once and after possible changes of facts or templates, until
// ctx ends. Calls without a change are possible. settled reports a change whose source
// waits for further ones itself: the network and the nodes.
func (s *Source) Watch(ctx context.Context, changed func(settled bool)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	defer w.Close()
	network, err := nodeip.Watch(ctx)
	if err != nil {
		return err
	}
	var nodes <-chan struct{}
	if s.Nodes != nil {
		nodes = s.Nodes.Changed()
	}
	tick := time.NewTicker(resyncEvery)
	defer tick.Stop()
	paths, settled := s.paths(), false
	for {
		watchDirs(w, paths)
		changed(settled)
		settled = false
		for quiet := true; quiet; {
			select {
			case <-ctx.Done():
				return nil
			case e := <-w.Events:
				quiet = !slices.Contains(paths, e.Name) && !slices.Contains(w.WatchList(), e.Name)
			case <-w.Errors: // for example an overflow: events are lost
				quiet = false
			case <-network:
				quiet, settled = false, true
			case <-nodes:
				quiet, settled = false, true
			case <-tick.C:
				quiet = false
			}
		}
	}
}

func (s *Source) paths() (out []string) {
	for _, path := range append([]string{s.ClusterConfig, s.ResolvConf}, s.Templates...) {
		if path != "" {
			out = append(out, filepath.Clean(path))
		}
	}
	return out
}

// watchDirs watches directories, because files are replaced by others of the same name.
// It adds missing directories at later calls.
func watchDirs(w *fsnotify.Watcher, paths []string) {
	watched := w.WatchList()
	for _, path := range paths {
		if dir := filepath.Dir(path); !slices.Contains(watched, dir) {
			_ = w.Add(dir)
		}
	}
}
