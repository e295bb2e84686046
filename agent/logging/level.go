// Package logging is how the jobs of a node log: a lasting error once when
// it begins and once when it is over, and more or less of it all while they run. For
// that, a file in a directory that only root can write to says the level for all of
// them, one in a job's own directory that for this job alone. No network is needed,
// and nothing of it is left after a reboot.
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

	"github.com/vipgen/vipgen/internal/atomicfile"
)

// levelFile is that of the file for all jobs, and of that for one job in its directory.
const levelFile = "log-level"

// levels are the levels, the most talkative first.
var levels = []string{"DEBUG", "INFO", "WARN", "ERROR"}

// file is where the level for a job is, that for all of them if job is empty.
func file(dir, job string) string {
	if job == "" {
		return filepath.Join(dir, levelFile)
	}
	return filepath.Join(dir, job, levelFile)
}

// ParseLevel reads a level, in upper or lower case, such as "DEBUG".
func ParseLevel(text string) (level slog.Level, err error) {
	if !slices.Contains(levels, strings.ToUpper(text)) {
		return level, fmt.Errorf("%q is no log level, expected one of %s", text, strings.Join(levels, ", "))
	}
	return level, level.UnmarshalText([]byte(text))
}

// SetLevel makes a level that of a job, or of all that have none of their own if job
// is empty.
func SetLevel(dir, job string, level slog.Level) error {
	if err := os.MkdirAll(filepath.Dir(file(dir, job)), 0o755); err != nil {
		return err
	}
	_, err := atomicfile.Write(file(dir, job), []byte(level.String()+"\n"), 0o644)
	return err
}

// ResetLevel makes a job follow that of all again. For an empty job, all jobs follow
// their command lines.
func ResetLevel(dir, job string) error {
	_, err := atomicfile.Remove(file(dir, job))
	return err
}

// Level returns the level that was set for a job, or for all if job is empty; set
// is false when none was.
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

// LevelFollower keeps the level of one job.
type LevelFollower struct {
	Dir, Job string
	// Usual is the level where nobody set another one.
	Usual slog.Level
	Level *slog.LevelVar
	Log   *slog.Logger

	said map[string]string // what was complained about, by the job asked for
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
	f.said = map[string]string{}
	for {
		f.look()
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
		case e := <-w.Events: // of everything in the directories
			if e.Name == file(f.Dir, "") || e.Name == file(f.Dir, f.Job) {
				return true
			}
		case <-w.Errors: // events were lost
			return true
		}
	}
}

// look brings the level in line.
func (f *LevelFollower) look() {
	level := f.Usual
	for _, job := range []string{"", f.Job} {
		l, set, err := Level(f.Dir, job)
		if set {
			level = l
		}
		f.complain(job, err)
	}
	if before := f.Level.Level(); level != before {
		f.Level.Set(min(before, level, slog.LevelInfo)) // this line is for everybody
		f.Log.Info("log level changed", "level", level.String(), "before", before.String())
		f.Level.Set(level)
	}
}

// complain logs a mistake once.
func (f *LevelFollower) complain(job string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != f.said[job] {
		f.Log.Warn("a log level is ignored; set one with vipgen-agent log-level", "error", text)
	}
	f.said[job] = text
}
