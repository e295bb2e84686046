package state

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"go.uber.org/goleak"
)

// writerVariable makes the test binary publish in the directory that it names, and wait to be
// killed until its standard input ends: Go ends a program whose goroutines are all asleep.
const writerVariable = "STATE_TEST_DIR"

// keep references published files: the garbage collector would close them, and release their
// locks.
var keep *Dir

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		d, err := Open(dir)
		if err == nil {
			err = d.Publish(value{true, 7})
		}
		keep = d
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

type value struct {
	InPlace bool `json:"inPlace"`
	Count   int  `json:"count"`
}

func (value) JobName() string { return "firewall" }

// word replaces value by another type, unfit by one that JSON cannot represent.
type (
	unfit struct{ F func() }
)

func (unfit) JobName() string { return value{}.JobName() }

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	testkit.Must(t, err)
	t.Cleanup(func() {
		testkit.Check(t, d.Close())
	})
	return d
}

func expect(t *testing.T, d *Dir, alive bool, want value) {
	t.Helper()
	got, err := Read[value](d)
	if ok := got != nil; ok != alive || err != nil || ok && *got != want {
		t.Errorf("%+v, error %v; want alive %v, %+v", got, err, alive, want)
	}
}

func TestPublishAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	writer, reader := open(t, path), open(t, path)
	expect(t, reader, false, value{})
	for i := range 3 {
		for range 2 {
			testkit.Must(t, writer.Publish(value{true, i}))
			expect(t, reader, true, value{true, i})
		}
	}
	expect(t, writer, true, value{true, 2}) // a writer reads its own
	testkit.Must(t, writer.Close())
	expect(t, reader, false, value{})
	if entries, err := os.ReadDir(filepath.Join(path, "firewall")); len(entries) != 0 || err != nil {
		t.Errorf("left behind: %v, error %v", entries, err)
	}
	testkit.Fails(testkit.In(t, "a function"), writer.Publish(unfit{}), "")
}

// A pod is replaced: the new writer counts, whenever the old one ends.
func TestTwoWriters(t *testing.T) {
	path := t.TempDir()
	before, after := open(t, path), open(t, path)
	before.Publish(value{true, 1})
	after.Publish(value{true, 2})
	expect(t, before, true, value{true, 2})
	testkit.Must(t, before.Close())
	expect(t, after, true, value{true, 2})
	before.Publish(value{true, 1})
	after.Publish(value{true, 2}) // the same state again
	expect(t, before, true, value{true, 2})
}

func TestKilledWriter(t *testing.T) {
	d := open(t, t.TempDir())
	ctx := t.Context()
	changed, err := d.Watch(ctx, value{})
	testkit.Must(t, err)
	for range 3 {
		writer := startWriter(t, d.path)
		awaitAlive(t, d, changed, true)
		expect(t, d, true, value{true, 7})
		writer.Process.Kill()
		began := time.Now()
		awaitAlive(t, d, changed, false)
		t.Logf("the end of the writer showed after %v", time.Since(began))
		if writer.Wait(); writer.ProcessState.ExitCode() != -1 {
			t.Fatalf("the writer was not killed: %v", writer.ProcessState)
		}
		expect(t, d, false, value{})
	}
}

func startWriter(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	writer := exec.Command("/proc/self/exe")
	writer.Env = append(os.Environ(), writerVariable+"="+dir)
	out, err := writer.StdoutPipe()
	if err == nil {
		_, err = writer.StdinPipe()
	}
	if err == nil {
		err = writer.Start()
	}
	testkit.Must(t, err)
	t.Cleanup(func() { writer.Process.Kill(); writer.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the writer printed %q (%v)", line, err)
	}
	return writer
}

// awaitAlive reads only on request.
func awaitAlive(t *testing.T, d *Dir, changed <-chan struct{}, want bool) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		if v, err := Read[value](d); err != nil {
			t.Fatal(err)
		} else if v != nil == want {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("no notification that the writer is alive: %v", want)
		}
	}
}

// While a writer publishes repeatedly, readers always see it alive and its state complete.
func TestReadWhilePublishing(t *testing.T) {
	path := t.TempDir()
	writer := open(t, path)
	writer.Publish(value{true, 0})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			reader, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			for last := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				v, err := Read[value](reader)
				if v == nil || err != nil || !v.InPlace || v.Count < last {
					t.Errorf("%+v, error %v after %d", v, err, last)
					return
				}
				last = v.Count
			}
		})
	}
	for i := range 500 {
		testkit.Check(t, writer.Publish(value{true, i}))
	}
	close(stop)
	readers.Wait()
}

func TestWatch(t *testing.T) {
	d := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	changed, err := d.Watch(ctx, value{})
	testkit.Must(t, err)
	for i := range 20 {
		testkit.Must(t, d.Publish(value{true, i}))
		deadline := time.After(testkit.Patience)
		for got := (value{Count: -1}); got.Count != i; {
			select {
			case <-changed:
				if v, _ := Read[value](d); v != nil {
					got = *v
				}
			case <-deadline:
				t.Fatalf("no notification of %d", i)
			}
		}
	}
	cancel()
	for range changed {
	}
	_, err = (&Dir{path: "/no/such/directory"}).Watch(t.Context(), value{})
	testkit.Fails(testkit.In(t, "a directory that is not there"), err, "")
}
