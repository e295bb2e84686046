package process

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// A written program can be executed at once, while other goroutines start programs.
func TestWriteProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				exec.Command("true").Run()
			}
		})
	}
	defer others.Wait()
	defer cancel()
	dir := t.TempDir()
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprint(i))
		testkit.Must(t, WriteProgram(path, []byte("#!/bin/true\n")))
		testkit.Must(t, exec.Command(path).Run())
	}
}
