package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"golang.org/x/sys/unix"
)

// What a full disk has no room for withdraws what was said before, and is there
// as soon as it can be.
func TestFullDisk(t *testing.T) {
	testkit.Privileged(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	writer, reader := open(t, dir), open(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	changed, err := reader.Watch(ctx, value{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		for range changed { // until the watch has ended
		}
	}()
	if err := writer.Publish(value{true, 1}); err != nil {
		t.Fatal(err)
	}
	awaitAlive(t, reader, changed, true)
	rubbish := filepath.Join(dir, "rubbish")
	if err := os.WriteFile(rubbish, make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := writer.Publish(value{false, 2}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
	awaitAlive(t, reader, changed, false)
	if err := os.Remove(rubbish); err != nil {
		t.Fatal(err)
	}
	awaitAlive(t, reader, changed, true)
	expect(t, reader, true, value{false, 2})
}
