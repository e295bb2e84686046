package events

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// record writes events to a directory, and gives what was logged about it.
func record(t *testing.T, dir string, list ...Event) (logged string) {
	t.Helper()
	var log bytes.Buffer
	r := Open(dir, "master-0", slog.New(slog.NewTextHandler(&log, nil)))
	for _, e := range list {
		for r.full() { // what a test writes at once is more than a node does
			time.Sleep(time.Millisecond)
		}
		r.Note(e)
	}
	r.Close()
	return log.String()
}

func (r *Ring) full() bool { return len(r.queue) == cap(r.queue) }

// recorded reads the record in a directory, the older file first.
func recorded(t *testing.T, dir string) (list []Event, skipped Skipped) {
	t.Helper()
	for _, name := range []string{OlderName, FileName} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		more, bad, err := Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
		skipped.Torn += bad.Torn
		skipped.Unknown += bad.Unknown
	}
	return list, skipped
}

// check gives n events about as many checks.
func check(n int) (list []Event) {
	for i := range n {
		list = append(list, Event{Kind: Check, Name: fmt.Sprint("check-", i), Why: strings.Repeat("x", 180)})
	}
	return list
}

// The record goes on over restarts: numbers count up, and the boot is named.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		if log := record(t, dir, Event{Kind: AgentStarted}, Event{Kind: AgentStopped}); log != "" {
			t.Errorf("logged %s", log)
		}
	}
	list, skipped := recorded(t, dir)
	if len(list) != 6 || skipped != (Skipped{}) {
		t.Fatalf("%d events, skipped %+v", len(list), skipped)
	}
	for i, e := range list {
		if e.Seq != uint64(i+1) || e.Node != "master-0" || len(e.Boot) != 36 || e.Up <= 0 || i > 0 && (e.Up < list[i-1].Up || e.Time.Before(list[i-1].Time)) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

// However much happens, the record has two files of a size, and the newest events.
func TestRecordIsBounded(t *testing.T) {
	dir := t.TempDir()
	const n = 6000
	record(t, dir, check(n)...)
	var size int64
	for _, name := range []string{OlderName, FileName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > MaxFile {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		size += info.Size()
	}
	list, skipped := recorded(t, dir)
	if last := list[len(list)-1]; last.Seq != n || last.Name != fmt.Sprint("check-", n-1) || skipped != (Skipped{}) || size < MaxFile {
		t.Errorf("%d events of %d bytes, the last %+v, skipped %+v", len(list), size, last, skipped)
	}
	for i := range list[1:] {
		if list[i+1].Seq != list[i].Seq+1 {
			t.Fatalf("%d after %d", list[i+1].Seq, list[i].Seq)
		}
	}
}

// A node that lost its power leaves half a line: the next run's lines are whole.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, check(3)...)
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-20); err != nil {
		t.Fatal(err)
	}
	record(t, dir, Event{Kind: AgentStarted})
	list, skipped := recorded(t, dir)
	if len(list) != 3 || list[2].Kind != AgentStarted || list[2].Seq != 3 || skipped.Torn != 1 {
		t.Errorf("%+v, skipped %+v", list, skipped)
	}
}

// What is in the way of the record is logged once, and the agent goes on.
func TestNoRecord(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, FileName)); err != nil {
				t.Fatal(err)
			}
			if log := record(t, dir, check(100)...); strings.Count(log, "events are not recorded") != 1 {
				t.Errorf("logged %q", log)
			}
		})
	}
	if log := record(t, "/no/such/directory", check(10)...); strings.Count(log, "events are not recorded") != 1 {
		t.Errorf("logged %q", log)
	}
	var none *Ring
	none.Note(Event{})
	none.Close()
}

// On a full disk and on a read-only one, events are left out and counted; when there is
// room again, the record goes on, with whole lines.
func TestFullDisk(t *testing.T) {
	testkit.Live(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatalf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	var log bytes.Buffer
	r := Open(dir, "master-0", slog.New(slog.NewTextHandler(&log, nil)))
	for _, e := range check(100) {
		r.Note(e)
	}
	testkit.Await(t, "the queue to be empty", func() bool { return len(r.queue) == 0 })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "an event to be recorded again", func() bool {
		r.Note(Event{Kind: Check, Name: fmt.Sprint("again-", time.Now().UnixNano())})
		data, err := os.ReadFile(filepath.Join(dir, FileName))
		return err == nil && strings.Contains(string(data), "again-")
	})
	r.Close()
	if got := log.String(); strings.Count(got, "events are not recorded") != 1 || strings.Count(got, "recorded on disk again") != 1 {
		t.Errorf("logged %s", got)
	}
	list, skipped := recorded(t, dir)
	var left uint64
	for _, e := range list {
		left += e.LeftOut
	}
	if skipped.Torn > 1 || left == 0 {
		t.Errorf("%d events, %d left out, skipped %+v", len(list), left, skipped)
	}

	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if log := record(t, dir, check(10)...); strings.Count(log, "events are not recorded") != 1 {
		t.Errorf("read-only: logged %q", log)
	}
}
