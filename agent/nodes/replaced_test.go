package nodes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// mountFile bind-mounts a new file over another one, as kubelet has a runtime do, and returns
// both paths.
func mountFile(t *testing.T) (onHost, inContainer string) {
	t.Helper()
	dir := t.TempDir()
	onHost, inContainer = filepath.Join(dir, "host"), filepath.Join(dir, "container")
	for _, path := range []string{onHost, inContainer} {
		testkit.Must(t, os.WriteFile(path, nil, 0o600))
	}
	testkit.Must(t, unix.Mount(onHost, inContainer, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(inContainer, unix.MNT_DETACH) })
	return onHost, inContainer
}

func TestReplaced(t *testing.T) {
	testkit.Privileged(t)
	onHost, inContainer := mountFile(t)
	expect := func(want bool) {
		t.Helper()
		testkit.Equal(t, want, replaced(inContainer))
	}
	expect(false)
	testkit.Must(t, os.WriteFile(onHost, []byte("written in place"), 0o600))
	expect(false)
	testkit.Must(t, os.Rename(onHost, onHost+"-aside"))
	expect(false) // it may return
	testkit.Must(t, os.Remove(onHost+"-aside"))
	expect(true)
	if replaced(onHost) {
		t.Error("a file that is missing counts as replaced")
	}
}

// A job exits only while its kubeconfig has been replaced and no API server answers, and not on
// all nodes at once.
func TestAwaitReplaced(t *testing.T) {
	testkit.Privileged(t)
	onHost, inContainer := mountFile(t)
	run := func(node string, stale func(time.Duration) bool) (replaced bool, after time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			replaced = AwaitReplaced(ctx, inContainer, node, func() bool { return stale(time.Since(began)) })
			after = time.Since(began)
		})
		return replaced, after
	}
	always := func(time.Duration) bool { return true }
	if replaced, _ := run("master-0", always); replaced {
		t.Error("the kubeconfig is as it was")
	}
	testkit.Must(t, os.Remove(onHost))
	ends := map[time.Duration]bool{}
	for _, node := range []string{"master-0", "master-1", "master-2"} {
		replaced, after := run(node, always)
		if !replaced || after < replacedFor || after > replacedFor+replacedSpread+replacedEvery {
			t.Errorf("%s: %v after %v", node, replaced, after)
		}
		ends[after] = true
		if replaced, _ := run(node, func(after time.Duration) bool { return after%replacedFor != 0 }); replaced {
			t.Errorf("%s: an API server answered every %v", node, replacedFor)
		}
	}
	testkit.Equal(t, 3, len(ends))
}
