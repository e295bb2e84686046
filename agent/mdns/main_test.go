package mdns

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// roleEnv makes the test binary run as a publisher of the host named in hostEnv, a resolver, or
// a Job of that host, with a directory for all its files, and nothing else.
const (
	roleEnv = "VIPGEN_TEST_MDNS_ROLE"
	hostEnv = "VIPGEN_TEST_MDNS_HOST"
	dirEnv  = "VIPGEN_TEST_MDNS_DIR"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := run(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// report is a line of such a process's standard output.
type report struct {
	State    *stateReport
	Hosts    []state.Host
	Complain string
}

// stateReport is a publisherState.
type stateReport struct {
	Link      string
	Addresses []netip.Addr
	Published bool
	Conflict  *conflictError
	Err       string
}

// run plays the role until SIGTERM. Lines of standard input are addresses. It fails if
// goroutines remain.
func run(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	addresses := make(chan []netip.Addr)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var addrs []netip.Addr
			if err := json.Unmarshal(lines.Bytes(), &addrs); err != nil {
				panic(err)
			}
			addresses <- addrs
		}
	}()
	out := json.NewEncoder(os.Stdout)
	before := goleak.IgnoreCurrent()
	if role == "job" {
		out.Encode(report{})
		return errors.Join(runJob(ctx), goleak.Find(before))
	}
	if role == "resolver" {
		(&resolver{
			Addresses: addresses,
			Notify:    func(hosts []state.Host) { out.Encode(report{Hosts: hosts}) },
			Report:    func(err error) { out.Encode(report{Complain: fmt.Sprint(err)}) },
		}).run(ctx)
		return goleak.Find(before)
	}
	publisher := &publisher{Host: os.Getenv(hostEnv), Addresses: addresses, Notify: func(s publisherState) {
		r := &stateReport{Link: s.Link, Addresses: s.Addresses, Published: s.Published}
		if s.Err != nil {
			r.Err = s.Err.Error()
			r.Conflict, _ = s.Err.(*conflictError)
		}
		out.Encode(report{State: r})
	}}
	return errors.Join(publisher.run(ctx), goleak.Find(before))
}

func runJob(ctx context.Context) error {
	at := os.Getenv(dirEnv)
	dir, err := state.Open(at)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	source := &facts.Source{
		Name: os.Getenv(hostEnv), Role: v1alpha1.RoleMaster, Log: log,
		ClusterConfig: filepath.Join(at, filepath.Base(v1alpha1.ClusterConfigPath)),
	}
	job := Job{Source: source, State: dir, Log: log}
	return errors.Join(job.Run(ctx), dir.Close())
}
