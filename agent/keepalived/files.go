package keepalived

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// watchFiles leaves a word in changed when one of the files is written, replaced
// or removed, until ctx ends. It watches their directories, because files are
// replaced by a rename. A directory that is missing is logged and not watched.
func watchFiles(ctx context.Context, files []string, changed chan<- struct{}, log *slog.Logger) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	for _, f := range files {
		if err := w.Add(filepath.Dir(f)); err != nil {
			log.Warn("changes of a file are noticed late", "file", f, "error", err)
		}
	}
	go func() {
		defer w.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-w.Events:
				if slices.Contains(files, e.Name) {
					say(changed)
				}
			case <-w.Errors: // it lost events, so that it may have lost ours
				say(changed)
			}
		}
	}()
	return nil
}
