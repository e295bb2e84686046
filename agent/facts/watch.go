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
// changed, until ctx ends. It reports many that change nothing.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	defer files.Close()
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
	for {
		s.watchDirs(files)
		changed()
		select {
		case <-ctx.Done():
			return nil
		case <-network:
		case <-nodes:
		case <-files.Events:
		case <-files.Errors: // such as too many events: some are lost
		case <-tick.C:
		}
	}
}

// watchDirs watches directories, since files are replaced by others of the same
// name. Those that are watched already stay so; those that are missing may come.
func (s *Source) watchDirs(w *fsnotify.Watcher) {
	watched := w.WatchList()
	for _, path := range append([]string{s.ClusterConfig, s.ResolvConf}, s.Templates...) {
		if dir := filepath.Dir(path); path != "" && !slices.Contains(watched, dir) {
			_ = w.Add(dir)
		}
	}
}
