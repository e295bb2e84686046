package early

import (
	"context"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Its imports are initialised first.
func TestImports(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "early.go", nil, parser.ImportsOnly)
	testkit.Must(t, err)
	for _, spec := range f.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); path {
		case "os", "syscall":
		default:
			t.Errorf("%s is imported, and initialised before a probe is answered", path)
		}
	}
}

func TestDirectory(t *testing.T) {
	if dir != v1alpha1.RunDir || filepath.Join(dir, "job") != v1alpha1.JobDir("job") {
		t.Errorf("%s is not the directory of jobs", dir)
	}
}

func TestAsk(t *testing.T) {
	run := t.TempDir()
	if Ask(run, "job") {
		t.Error("alive without a job")
	}
	hang := make(chan struct{})
	answers := map[string]func() string{
		"works": func() string { return Alive },
		"fails": func() string { return "" },
		"warns": func() string { return Alive + ", but" },
		"short": func() string { return Alive[:1] },
		"hangs": func() string { <-hang; return Alive },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for name, answer := range answers {
		go func() {
			liveness.Serve(ctx, filepath.Join(run, name), Socket, answer, slog.New(slog.NewTextHandler(t.Output(), nil)))
			ended <- struct{}{}
		}()
	}
	for name := range answers {
		socket := filepath.Join(run, name, Socket)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(socket); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no socket %s", socket)
			}
		}
		began := time.Now()
		testkit.Equal(testkit.In(t, name), name == "works", Ask(run, name))
		if took := time.Since(began); name == "hangs" && took < Patience*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
	}
	if Ask(run, "../works") || Ask(run, "") {
		t.Error("another directory was asked")
	}
	close(hang)
	cancel()
	for range answers {
		<-ended
	}
}
