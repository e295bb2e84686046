package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/fileio"
)

// File is the result of reading a record.
type File struct {
	Name   string `json:"name"`
	Events int    `json:"events"`
	events.Skipped
}

// Limits of all input.
const (
	maxEvents  = 500_000
	maxFiles   = 10_000
	maxEntries = 1_000_000 // in directories
)

// Files returns the records at paths: files, and directories with records anywhere below, by
// the agents' names for them (".vipgen-events.jsonl", or "master-0-vipgen-events.jsonl"). Links
// are not followed.
func Files(paths []string) (out []string, err error) {
	entries := 0
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		found := len(out)
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if entries++; entries > maxEntries || len(out) > maxFiles {
				return fmt.Errorf("%s: more than %d files and folders, or %d records", path, maxEntries, maxFiles)
			}
			if err == nil && d.Type().IsRegular() && isRecord(d.Name()) {
				out = append(out, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if found == len(out) {
			return nil, fmt.Errorf("%s: no file named like %s there or below", path, strings.TrimPrefix(events.FileName, "."))
		}
	}
	return out, nil
}

func isRecord(name string) bool {
	return strings.Contains(name, "vipgen-events") && strings.Contains(name, ".jsonl")
}

// ReadFiles reads records, and returns how much of each was readable. in is read for "-".
func ReadFiles(paths []string, in io.Reader) (list []events.Event, files []File, err error) {
	for _, path := range paths {
		more, skipped, err := readFile(path, in)
		if err != nil {
			return nil, nil, err
		}
		if room := maxEvents - len(list); len(more) > room {
			more, skipped.Beyond = more[:room], true
		}
		list = append(list, more...)
		files = append(files, File{Name: path, Events: len(more), Skipped: skipped})
	}
	return list, files, nil
}

func readFile(path string, in io.Reader) ([]events.Event, events.Skipped, error) {
	if path == "-" {
		return events.Read(in)
	}
	f, err := fileio.Named(path)
	if err != nil {
		return nil, events.Skipped{}, err
	}
	defer f.Close()
	list, skipped, err := events.Read(f)
	var failed *fs.PathError
	if err != nil && !errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return list, skipped, err
}
