package supervise

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"golang.org/x/sys/unix"
)

// sleeper starts a process that ends with the test.
func sleeper(t *testing.T) int {
	t.Helper()
	c := exec.Command("sleep", "infinity")
	testkit.Must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c.Process.Pid
}

// The kernel refuses SCHED_DEADLINE to a process that may not run on every core.
func TestRaiseScheduling(t *testing.T) {
	testkit.Live(t)
	var one unix.CPUSet
	one.Set(0)
	for _, tt := range []struct {
		name  string
		cores *unix.CPUSet
		want  Scheduling
	}{
		{"every core", nil, Deadline},
		{"one core", &one, RoundRobin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := sleeper(t)
			var all unix.CPUSet
			testkit.Must(t, unix.SchedGetaffinity(pid, &all))
			if tt.cores != nil {
				if all.Count() == 1 {
					testkit.CannotRun(t, "it has one core, and a process may run on every one")
				}
				testkit.Must(t, unix.SchedSetaffinity(pid, tt.cores))
			}
			if policy, err := scheduling(pid); policy != Ordinary || err != nil {
				t.Fatalf("before: %s, %v", policy, err)
			}
			// The kernel admits a limited number to SCHED_DEADLINE, including those of other
			// tests.
			testkit.Await(t, string(tt.want), func() bool {
				policy, err := RaiseScheduling(pid)
				if policy != tt.want && policy != RoundRobin || err != nil {
					t.Fatalf("%s, %v; want %s", policy, err, tt.want)
				}
				return policy == tt.want
			})
			if policy, err := RaiseScheduling(pid); policy != tt.want || err != nil {
				t.Errorf("again: %s, %v; want %s", policy, err, tt.want)
			}
			if policy, err := scheduling(pid); policy != tt.want || err != nil {
				t.Errorf("after: %s, %v; want %s", policy, err, tt.want)
			}
		})
	}
}

func TestRaiseSchedulingOfEndedProcess(t *testing.T) {
	c := exec.Command("true")
	testkit.Must(t, c.Run())
	if policy, err := RaiseScheduling(c.Process.Pid); policy != "" || !errors.Is(err, unix.ESRCH) {
		t.Errorf("%q, %v", policy, err)
	}
}

func TestRaiseThreads(t *testing.T) {
	testkit.Live(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"=raised")
	testkit.Equal(t, "<nil> 1 true\n", string(testkit.Run(t, c)))
}

// scheduling returns the current policy of a process.
func scheduling(pid int) (Scheduling, error) {
	attr, err := unix.SchedGetAttr(pid, 0)
	if err != nil {
		return "", err
	}
	switch attr.Policy {
	case unix.SCHED_DEADLINE:
		return Deadline, nil
	case unix.SCHED_RR:
		return RoundRobin, nil
	}
	return Ordinary, nil
}
