package keepalived

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/atomicfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Source reads cluster.yaml and keeps the last good one, also over restarts of
// the agent and of the node.
type Source struct {
	// Path of cluster.yaml. Kept is where a copy of the last good one is; empty
	// for none.
	Path, Kept string
	Log        *slog.Logger

	mu      sync.Mutex
	last    *v1alpha1.ClusterConfig
	problem string
}

// Load returns the facts of the cluster: those on disk, or the last good ones
// when what is on disk cannot be read or is not right as a whole. The error is
// not nil only if there never was a good one.
func (s *Source) Load() (*v1alpha1.ClusterConfig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, data, err := load(s.Path)
	s.say(err)
	if err == nil {
		s.last = c
		s.keep(data)
		return c, nil
	}
	if s.last == nil && s.Kept != "" {
		s.last, _, _ = load(s.Kept)
	}
	if s.last == nil {
		return nil, err
	}
	return s.last, nil
}

func load(path string) (*v1alpha1.ClusterConfig, []byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := v1alpha1.LoadClusterConfig(path, data)
	return c, data, err
}

// keep does not fail: a disk that is full or read-only is no reason to work with
// old facts.
func (s *Source) keep(data []byte) {
	if s.Kept == "" {
		return
	}
	if _, err := atomicfile.Write(s.Kept, data, 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("a copy of the cluster's facts cannot be kept", "file", s.Kept, "error", err)
	}
}

// say logs what is new.
func (s *Source) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.problem {
		s.Log.Error("the cluster's facts are not used, the last good ones stand", "error", err)
	}
	if text == "" && s.problem != "" {
		s.Log.Info("the cluster's facts are good again", "file", s.Path)
	}
	s.problem = text
}

// Problem says what is wrong with the file on disk, or nothing.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Await returns the facts of the cluster as soon as there are good ones.
func (s *Source) Await(ctx context.Context) (*v1alpha1.ClusterConfig, error) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		c, err := s.Load()
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
		}
	}
}
