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

// lookAgain is how often a change is assumed although nobody reported one: a
// directory may not have been there to be watched, or was replaced.
const lookAgain = 30 * time.Second

// Watch calls changed, at once and whenever the facts or the templates may have
// changed, until ctx ends. It reports some that change nothing. A change is settled if
// it was already waited for others to follow it: of the network and of the nodes.
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
	tick := time.NewTicker(lookAgain)
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
			case <-w.Errors: // such as too many events: some are lost
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

// watchDirs watches directories, since files are replaced by others of the same
// name. Those that are watched already stay so; those that are missing may come.
func watchDirs(w *fsnotify.Watcher, paths []string) {
	watched := w.WatchList()
	for _, path := range paths {
		if dir := filepath.Dir(path); !slices.Contains(watched, dir) {
			_ = w.Add(dir)
		}
	}
}
