// Package logging implements the logs of the agent's jobs: persistent errors are logged
// once when they begin and once when they end, and the level can be changed at run time,
// by a file for all jobs and one for each job in directories that only root can write. No
// network is needed, and nothing is left after a reboot.
package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/vipgen/vipgen/internal/fileio"
)

// levelFile is the name of the file for all jobs, and of the one in a job's directory.
const levelFile = "log-level"

var levels = []string{"DEBUG", "INFO", "WARN", "ERROR"}

// file returns the path of a job's level, or of the one for all jobs if job is empty.
func file(dir, job string) string {
	if job == "" {
		return filepath.Join(dir, levelFile)
	}
	return filepath.Join(dir, job, levelFile)
}

// ParseLevel parses a level, in upper or lower case, such as "DEBUG".
func ParseLevel(text string) (level slog.Level, err error) {
	if !slices.Contains(levels, strings.ToUpper(text)) {
		return level, fmt.Errorf("%q is not a log level, expected one of %s", text, strings.Join(levels, ", "))
	}
	return level, level.UnmarshalText([]byte(text))
}

// SetLevel sets the level of a job, or of all jobs without one of their own if job is
// empty.
func SetLevel(dir, job string, level slog.Level) error {
	if err := os.MkdirAll(filepath.Dir(file(dir, job)), 0o755); err != nil {
		return err
	}
	_, err := fileio.Write(file(dir, job), []byte(level.String()+"\n"), 0o644)
	return err
}

// ResetLevel removes the level of a job, which then follows the one for all jobs, or, if
// job is empty, the level for all jobs, which then follow their command lines.
func ResetLevel(dir, job string) error {
	_, err := fileio.Remove(file(dir, job))
	return err
}

// Level returns the level set for a job, or for all if job is empty; set is false if
// there is none.
func Level(dir, job string) (level slog.Level, set bool, err error) {
	path := file(dir, job)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return level, false, nil
	}
	if err == nil {
		level, err = ParseLevel(string(bytes.TrimSpace(data[:min(len(data), 64)])))
	}
	if err != nil {
		return level, false, fmt.Errorf("%s: %w", path, err)
	}
	return level, true, nil
}

// LevelFollower applies the level of one job.
type LevelFollower struct {
	Dir, Job string
	// Usual is the level if none is set.
	Usual slog.Level
	Level *slog.LevelVar
	Log   *slog.Logger

	logged map[string]string // complaint logged last, by job
}

// Run follows the files until ctx ends.
func (f *LevelFollower) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("following the log level: %w", err)
	}
	defer w.Close()
	for _, job := range []string{"", f.Job} {
		dir := filepath.Dir(file(f.Dir, job))
		if err := errors.Join(os.MkdirAll(dir, 0o755), w.Add(dir)); err != nil {
			return fmt.Errorf("following the log level: %w", err)
		}
	}
	f.logged = map[string]string{}
	for {
		f.update()
		if !f.await(ctx, w) {
			return nil
		}
	}
}

// await returns when a file may have changed; false if ctx has ended.
func (f *LevelFollower) await(ctx context.Context, w *fsnotify.Watcher) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case e := <-w.Events: // for all files in the directories
			if e.Name == file(f.Dir, "") || e.Name == file(f.Dir, f.Job) {
				return true
			}
		case <-w.Errors: // events were lost
			return true
		}
	}
}

func (f *LevelFollower) update() {
	level := f.Usual
	for _, job := range []string{"", f.Job} {
		l, set, err := Level(f.Dir, job)
		if set {
			level = l
		}
		f.complain(job, err)
	}
	if before := f.Level.Level(); level != before {
		f.Level.Set(min(before, level, slog.LevelInfo)) // log this line at both levels
		f.Log.Info("log level changed", "level", level.String(), "before", before.String())
		f.Level.Set(level)
	}
}

// complain logs an invalid level once.
func (f *LevelFollower) complain(job string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != f.logged[job] {
		f.Log.Warn("invalid log level ignored; set one with vipgen-agent log-level", "error", text)
	}
	f.logged[job] = text
}
