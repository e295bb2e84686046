package bench

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
)

// TestSettles builds the cluster of every profile, and has it become healthy.
func TestSettles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg := config(t)
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			began := time.Now()
			s, err := build(ctx, cfg, p, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					for _, n := range s.Nodes() {
						t.Log(n.Logs(20))
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			t.Logf("built after %v", time.Since(began))
			if err := s.settled(ctx); err != nil {
				t.Fatal(err)
			}
			t.Logf("settled after %v", time.Since(began))
			if h, err := s.Holder(ctx, s.VIPs(v1alpha1.GroupAPI)[0]); err != nil || h.Role != v1alpha1.RoleMaster {
				t.Errorf("the holder is %v, %v", h, err)
			}
		})
	}
}

// config is that of the demo cluster.
func config(t *testing.T) *Config {
	t.Helper()
	demo, err := Demo()
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "vipgen-agent")
	build := exec.Command("go", "build", "-trimpath", "-o", agent, "../../cmd/vipgen-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building vipgen-agent: %v\n%s", err, out)
	}
	coredns, err := filepath.Abs("../../.cache/bin/coredns")
	if err != nil {
		t.Fatal(err)
	}
	return &Config{
		Cluster: demo, Dir: t.TempDir(), Programs: lab.Programs{Agent: agent, CoreDNS: coredns},
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}
