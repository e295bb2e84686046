package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// place returns the place of a lab that created nothing, and does not run.
func place(t *testing.T, base, name string) Place {
	t.Helper()
	p, err := At(base, name)
	testkit.Must(t, err)
	return p
}

// leave makes the remains of a lab that was killed.
func leave(t *testing.T, p Place, namespaces ...string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Join(p.dir(), "cluster", "nodes"), 0o700))
	r, err := newRecord()
	testkit.Must(t, err)
	for _, n := range namespaces {
		testkit.Must(t, r.add(p.dir(), n))
	}
	testkit.Must(t, r.write(p.dir()))
}

func TestFind(t *testing.T) {
	base := t.TempDir()
	var none *NoLabError
	if _, err := Find(base, ""); !errors.As(err, &none) {
		t.Errorf("no lab: %v", err)
	}
	testkit.Must(t, os.Mkdir(filepath.Join(base, "other"), 0o755))
	leave(t, place(t, base, "one"))
	if p, err := Find(base, ""); err != nil || p.Name != "one" {
		t.Errorf("the only lab: %v, %v", p, err)
	}
	if _, err := Find(base, "other"); !errors.As(err, &none) {
		t.Errorf("a directory that is no lab's: %v", err)
	}
	leave(t, place(t, base, "two"))
	_, err := Find(base, "")
	testkit.Fails(t, err, "--name, one or two")
	if p, err := Find(base, "two"); err != nil || p.Name != "two" {
		t.Errorf("one of two: %v, %v", p, err)
	}
}

func TestTake(t *testing.T) {
	base := t.TempDir()
	p := place(t, base, "demo")
	lock, cleaned, err := p.acquire()
	if err != nil || cleaned {
		t.Fatalf("taking a new place: %t, %v", cleaned, err)
	}
	leave(t, p)
	_, _, err = p.acquire()
	testkit.Fails(t, err, "runs already")
	if running, err := p.running(); !running || err != nil {
		t.Errorf("running: %t, %v", running, err)
	}
	lock.Close()
	_, err = p.Ask(t.Context(), Request{Do: DoStatus})
	testkit.Fails(t, err, "does not run any more")
	lock, cleaned, err = p.acquire()
	if err != nil || !cleaned {
		t.Fatalf("taking a lab's remains: %t, %v", cleaned, err)
	}
	lock.Close()
	foreign := filepath.Join(p.dir(), "notes")
	testkit.WriteFile(t, foreign, nil)
	_, _, err = p.acquire()
	testkit.Fails(t, err, "is not a lab's directory, and not empty")
	_, err = p.Down(t.Context())
	testkit.Fails(t, err, "is not a lab's directory")
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// A record that cannot be the lab's keeps everything from being removed.
func TestForeignNamesAreLeftAlone(t *testing.T) {
	for _, name := range []string{"vg1-1-hub", "host", "../../etc", "vg" + strings.Repeat("9", 9) + "-1-n-a"} {
		p := place(t, t.TempDir(), "demo")
		leave(t, p, name)
		if _, err := p.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a namespace that process") {
			t.Errorf("%s: %v", name, err)
		}
		if !p.Used() {
			t.Errorf("%s: the record is gone", name)
		}
	}
}

// Nothing of an earlier boot still exists, whatever its name.
func TestReboot(t *testing.T) {
	p := place(t, t.TempDir(), "demo")
	leave(t, p)
	r, err := readRecord(p.dir())
	testkit.Must(t, err)
	r.BootID, r.Namespaces = "another", []string{"vg1-1-hub"}
	testkit.Must(t, r.write(p.dir()))
	if ran, err := p.Down(t.Context()); ran || err != nil {
		t.Errorf("ran %t, %v", ran, err)
	}
	if _, err := os.Stat(p.dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// A process that has the place and does not end is named.
func TestDownOfHangingProcess(t *testing.T) {
	p := place(t, t.TempDir(), "demo")
	lock, _, err := p.acquire()
	testkit.Must(t, err)
	defer lock.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if ran, err := p.Down(ctx); !ran || err == nil || !strings.Contains(err.Error(), "does not end: end it with SIGKILL") {
		t.Errorf("ran %t, %v", ran, err)
	}
}
