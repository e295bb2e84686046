package events

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// record writes events to a directory, and returns the messages logged about it.
func record(t *testing.T, dir string, list ...Event) (logged string) {
	t.Helper()
	var log bytes.Buffer
	r := Open(dir, "master-0", "", slog.New(slog.NewTextHandler(&log, nil)))
	for _, e := range list {
		for r.waiting() > maxBacklog/2 { // a test writes more at once than a node does
			time.Sleep(time.Millisecond)
		}
		r.Record(e)
	}
	r.Close()
	<-r.done
	return log.String()
}

// waiting returns the number of recorded events that were not read yet.
func (r *Ring) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.recorded.list)
}

// recorded reads the record in a directory, the older file first.
func recorded(t *testing.T, dir string) (list []Event, skipped Skipped) {
	t.Helper()
	for _, name := range []string{OlderName, FileName} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		testkit.Must(t, err)
		more, bad, err := Read(bytes.NewReader(data))
		testkit.Must(t, err)
		list = append(list, more...)
		skipped.Torn += bad.Torn
		skipped.Unknown += bad.Unknown
	}
	return list, skipped
}

// check returns n events about as many checks.
func check(n int) (list []Event) {
	for i := range n {
		list = append(list, Event{Kind: Check, Name: fmt.Sprint("check-", i), Why: strings.Repeat("x", 180)})
	}
	return list
}

// planned returns the test's own events: delays of the agent depend on the machine.
func planned(list []Event) []Event {
	return slices.DeleteFunc(slices.Clone(list), func(e Event) bool { return e.Kind == Late })
}

// contiguous fails the test if a number is missing.
func contiguous(t *testing.T, list []Event) {
	t.Helper()
	for i := range list[1:] {
		if list[i+1].Seq != list[i].Seq+1 {
			t.Fatalf("%d after %d", list[i+1].Seq, list[i].Seq)
		}
	}
}

// The record continues over restarts: numbers count up, and the boot is named.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		testkit.Equal(t, "", record(t, dir, Event{Kind: AgentStarted}, Event{Kind: AgentStopped}))
	}
	list, skipped := recorded(t, dir)
	if len(planned(list)) != 6 || skipped != (Skipped{}) {
		t.Fatalf("%d events, skipped %+v", len(list), skipped)
	}
	contiguous(t, list)
	for i, e := range list {
		if e.Node != "master-0" || len(e.Boot) != 36 || e.Up <= 0 || i > 0 && (e.Up < list[i-1].Up || e.Time.Before(list[i-1].Time)) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

// Events of several goroutines are recorded in the order of their times.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	r := Open(dir, "master-0", "", slog.New(slog.NewTextHandler(t.Output(), nil)))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range maxBacklog / 40 {
				r.Record(Event{Kind: State, Instance: "a", State: Master})
			}
		})
	}
	all.Wait()
	r.Close()
	<-r.done
	list, _ := recorded(t, dir)
	contiguous(t, list)
	if len(planned(list)) != maxBacklog/40*20 || !slices.IsSortedFunc(list, func(a, b Event) int { return cmp.Compare(a.Up, b.Up) }) {
		t.Errorf("%d events, not sorted", len(list))
	}
}

// However many events occur, the record has two files of bounded size, and the newest events.
func TestRecordIsBounded(t *testing.T) {
	dir := t.TempDir()
	const n = 6000
	record(t, dir, check(n)...)
	var size int64
	for _, name := range []string{OlderName, FileName} {
		info, err := os.Stat(filepath.Join(dir, name))
		testkit.Must(t, err)
		if info.Size() > maxFile {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		size += info.Size()
	}
	list, skipped := recorded(t, dir)
	contiguous(t, list)
	list = planned(list)
	if last := list[len(list)-1]; last.Seq < n || last.Name != fmt.Sprint("check-", n-1) || skipped != (Skipped{}) || size < maxFile {
		t.Errorf("%d events of %d bytes, the last %+v, skipped %+v", len(list), size, last, skipped)
	}
}

// A file begins with the current state, so that it can be read without its predecessors.
func TestStanding(t *testing.T) {
	dir := t.TempDir()
	list := []Event{
		{Kind: AgentStarted, First: true},
		{Kind: Instance, Instance: "a", Interface: "eth0"},
		{Kind: State, Instance: "a", State: Backup},
		{Kind: State, Instance: "a", State: Master},
	}
	for i := range 10_000 {
		list = append(list, Event{Kind: SilentHolder, Instance: fmt.Sprint("x-", i), Why: strings.Repeat("x", 180)})
	}
	record(t, dir, list...)
	read, _ := recorded(t, dir)
	got := map[string]int{}
	for _, e := range read {
		if e.Again {
			got[fmt.Sprint(e.Kind, e.Instance, e.State, e.First, e.Interface)]++
		}
	}
	want := map[string]int{"agent-startedtrue": 2, "instanceafalseeth0": 2, "stateaMASTERfalse": 2}
	if !maps.Equal(got, want) || read[0].Kind != AgentStarted || read[0].Up > read[1].Up {
		t.Errorf("%v, the first %+v", got, read[0])
	}
}

// Events that cannot be written are kept, up to a bound, and those beyond it are counted.
func TestBacklog(t *testing.T) {
	var b backlog
	for i := range 3 * maxBacklog {
		b.add(Event{Up: Millis(i), LeftOut: 1})
	}
	first := b.drain()
	b.add(first[10:]...)
	b.add(Event{Up: 1 << 20})
	list := b.drain()
	if len(list) != maxBacklog-9 || list[0].Up != 2*maxBacklog+10 || first[0].Missed != 4*maxBacklog || list[len(list)-1].Up != 1<<20 || b.drain() != nil {
		t.Errorf("%d events, %+v, %+v", len(list), first[0], list[0])
	}
}

// Each event has the time for which the agent has run without a delay.
func TestOnTime(t *testing.T) {
	var o onTime
	at := func(after time.Duration) time.Duration { return 100*time.Second + after }
	o.begin(at(0))
	for i := range 20 {
		testkit.Equal(t, 0, o.tick(at(time.Duration(i+1)*tickInterval)))
	}
	check := func(after, on, late time.Duration) {
		t.Helper()
		if gotOn, gotLate := o.at(at(after)); gotOn != on || gotLate != late {
			t.Errorf("on time for %v, %v late", gotOn, gotLate)
		}
	}
	check(2050*time.Millisecond, 2050*time.Millisecond, 0)
	check(2290*time.Millisecond, 2290*time.Millisecond, 0)
	check(4*time.Second, 0, 1900*time.Millisecond) // it was late: events recorded now may be old
	testkit.Equal(t, 1900*time.Millisecond, o.tick(at(4*time.Second)))
	check(4050*time.Millisecond, 50*time.Millisecond, 0)
}

// A power loss leaves half a line: the lines of the next run are complete.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, check(3)...)
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Must(t, os.Truncate(path, info.Size()-20))
	record(t, dir, Event{Kind: AgentStarted})
	list, skipped := recorded(t, dir)
	contiguous(t, list)
	if list = planned(list); len(list) != 3 || list[2].Kind != AgentStarted || skipped.Torn != 1 {
		t.Errorf("%+v, skipped %+v", list, skipped)
	}
}

// An obstacle to the record is logged once, and the agent continues.
func TestNoRecord(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.Must(t, put(filepath.Join(dir, FileName)))
			testkit.Equal(t, 1, strings.Count(record(t, dir, check(100)...), "events are not recorded"))
		})
	}
	testkit.Equal(t, 1, strings.Count(record(t, "/no/such/directory", check(10)...), "events are not recorded"))
	var none *Ring
	none.Record(Event{})
	none.Close()
}

// On a full or read-only disk, events are kept until there is space again; then the record
// continues with complete lines. It does not prevent remounting the file system.
func TestFullDisk(t *testing.T) {
	testkit.Privileged(t)
	dir := t.TempDir()
	testkit.Must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	remount := func(flags uintptr, data string) {
		t.Helper()
		testkit.Await(t, "the file system to be remounted", func() bool {
			err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, data)
			if err != nil && !errors.Is(err, unix.EBUSY) { // a line is being written
				t.Fatal(err)
			}
			return err == nil
		})
	}
	has := func(name string) bool {
		data, err := os.ReadFile(filepath.Join(dir, FileName))
		return err == nil && strings.Contains(string(data), `"`+name+`"`)
	}
	var log bytes.Buffer
	r := Open(dir, "master-0", "", slog.New(slog.NewTextHandler(&log, nil)))
	const n = 100
	for i, e := range check(n) {
		r.Record(e)
		if i == n/4 {
			testkit.Await(t, "events to be recorded", func() bool { return has(fmt.Sprint("check-", i)) })
		}
	}
	remount(0, "size=1m")
	testkit.Await(t, "all events to be recorded", func() bool { return has(fmt.Sprint("check-", n-1)) })
	remount(unix.MS_RDONLY, "")
	r.Record(Event{Kind: AgentStopping})
	testkit.Await(t, "it to be tried", func() bool { return r.waiting() == 0 })
	remount(0, "")
	testkit.Await(t, "the event to be recorded", func() bool { return has(string(AgentStopping)) })
	r.Close()
	<-r.done
	if got := log.String(); !strings.Contains(got, "events are not recorded") || strings.Count(got, "are not recorded") != strings.Count(got, "recorded on disk again") {
		t.Errorf("logged %s", got)
	}
	list, skipped := recorded(t, dir)
	contiguous(t, list)
	if got := len(planned(list)); got != n+1 || skipped.Torn > 1 {
		t.Errorf("%d events, skipped %+v", got, skipped)
	}
	for _, e := range list {
		if e.Missed+e.LeftOut > 0 {
			t.Errorf("something is missing before %+v", e)
		}
	}

	remount(unix.MS_RDONLY, "")
	testkit.Equal(t, 1, strings.Count(record(t, dir, check(10)...), "events are not recorded"))
}
