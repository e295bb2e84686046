// Package input finds and reads the files of clusters: install-configs, objects that describe
// clusters, the files next to them, and the defaults of a fleet.
package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/gitops"
)

// Limits of a file, checked before it is parsed: a tree takes many times its size, about 600
// bytes for each value. The Nodes of a cluster have some hundred values each.
const (
	MaxFile   = 40 << 20
	MaxSum    = 64 << 20 // for files that are read together
	MaxValues = 450_000
)

// Limits of an Ignition config that is merged into: Ignition's own parser, which validates it,
// takes ten times the memory and time of others. A bootstrap.ign has some MiB and thousands of
// values.
const (
	MaxBase       = 16 << 20
	MaxBaseValues = 50_000
)

// Reader reads files of users. One of them may be standard input.
type Reader struct {
	// In is standard input.
	In io.Reader

	inRead     bool
	companions companions
}

// File reads a file, or standard input for "-". An error is a problem.List.
func (r *Reader) File(name string) ([]byte, error) {
	if name == "-" {
		if r.inRead {
			return nil, Unreadable(name, errors.New("standard input a second time"))
		}
		r.inRead = true
		return Bounded(name, r.In)
	}
	return ReadFile(name)
}

// Base is File for an Ignition config that is merged into.
func (r *Reader) Base(name string) ([]byte, error) {
	data, err := r.File(name)
	if err == nil {
		data, err = bounded(name, data, MaxBase, MaxBaseValues)
	}
	return data, err
}

// ReadFile reads a file; "-" has no special meaning.
func ReadFile(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	defer f.Close()
	return Bounded(name, f)
}

func openFile(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, errors.New("a directory")
	}
	f, err := fileio.Named(name)
	if errors.Is(err, fileio.ErrOther) {
		return nil, fmt.Errorf("%w; for a pipe, give - and its output as standard input", fileio.ErrOther)
	}
	return f, err
}

// Bounded reads an open file, up to the limits.
func Bounded(name string, r io.Reader) ([]byte, error) {
	var text bytes.Buffer
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			text.Grow(int(min(info.Size(), MaxFile)) + bytes.MinRead) // avoids copies
		}
	}
	if _, err := text.ReadFrom(io.LimitReader(r, MaxFile+1)); err != nil {
		return nil, Unreadable(name, err)
	}
	return bounded(name, text.Bytes(), MaxFile, MaxValues)
}

func bounded(name string, data []byte, maxSize, maxValues int) ([]byte, error) {
	if err := tooLarge(len(data), values(data), maxSize, maxValues); err != nil {
		return nil, Unreadable(name, err)
	}
	return data, nil
}

// Sum is the total size of files that are read together, as those of a folder.
type Sum struct{ size, values int }

// Add adds a file and returns an error above the limits.
func (s *Sum) Add(name string, data []byte) error {
	s.size += len(data)
	s.values += values(data)
	if err := tooLarge(s.size, s.values, MaxSum, MaxValues); err != nil {
		return Unreadable(name, fmt.Errorf("with the files before it %w", err))
	}
	return nil
}

// tooLarge describes the exceeded limit. Text is memory as well: the more of it there is, the
// fewer values it may have, down to a quarter.
func tooLarge(size, values, maxSize, maxValues int) error {
	if size > maxSize {
		return fmt.Errorf("larger than %d MiB", maxSize>>20)
	}
	if most := maxValues - int(int64(maxValues)*3*int64(size)/(4*int64(maxSize))); values > most {
		return fmt.Errorf("more than %d values in %d bytes", most, size)
	}
	return nil
}

// values returns an upper bound of the values in YAML or JSON: each has a line of its own, or
// comes after a comma, a bracket, a dash or a colon.
func values(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case '\n', ',', '[', '{':
			n++
		case '-', ':', '?':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

// Unreadable returns the problem of an unreadable file.
func Unreadable(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return problem.List{{File: name, Severity: problem.Error, Code: problem.Unreadable, Found: err.Error(), Expected: "a file that can be read"}}
}

// Files holds the names of a cluster's files that the user gave; empty for the usual ones.
type Files struct{ Config, AgentConfig, ClusterIngress, Fleet string }

// Sources reads the files of a cluster: the install-config, or the file or folder with its
// object, and the files next to it. An error is a problem.List with all problems.
func (r *Reader) Sources(installConfig string, f Files) (render.Sources, error) {
	installConfig, object := SplitObject(installConfig)
	if info, err := os.Stat(installConfig); err == nil && info.IsDir() {
		installConfig = inputIn(installConfig)
	}
	var problems problem.List
	note := func(err error) {
		if list, ok := errors.AsType[problem.List](err); ok {
			problems = append(problems, list...)
		}
	}
	data, err := r.File(installConfig)
	note(err)
	s := render.Sources{InstallConfig: render.File{Name: installConfig, Data: data}, Object: object}
	s.VIPConfig, err = r.beside(installConfig, f.Config, VIPConfigName)
	note(err)
	if gitops.HasCluster(data) {
		s.Companions = r.companions.related(installConfig, data)
		if f.AgentConfig != "" {
			note(problem.List{{File: f.AgentConfig, Severity: problem.Error, Code: problem.ConflictingFields,
				Found: "an agent-config", Expected: "none: " + installConfig + " has the nodes"}})
		}
	} else {
		s.AgentConfig, err = r.beside(installConfig, f.AgentConfig, AgentConfigName)
		note(err)
	}
	s.ClusterIngress, err = r.beside(installConfig, f.ClusterIngress, ClusterIngressName)
	note(err)
	s.Defaults, err = findDefaults(installConfig, f.Fleet)
	note(err)
	return s, problems.Err()
}

// beside reads the named file, or the usual one next to the install-config.
func (r *Reader) beside(installConfig, named, usual string) (*render.File, error) {
	name := named
	if name == "" {
		if installConfig == "-" {
			return nil, nil
		}
		name = filepath.Join(filepath.Dir(installConfig), usual)
		if name == filepath.Clean(installConfig) {
			return nil, nil // given as the install-config, which reports it
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	data, err := r.File(name)
	if err != nil {
		return nil, err
	}
	return &render.File{Name: name, Data: data}, nil
}
