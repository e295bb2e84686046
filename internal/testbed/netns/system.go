package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// path returns the path of a namespace of ip netns.
func path(namespace string) string { return filepath.Join("/run/netns", namespace) }

func ip(args ...string) error {
	_, err := ipOutput(args...)
	return err
}

// ipOutput runs iproute2's ip and returns its output; its messages become part of the error.
func ipOutput(args ...string) ([]byte, error) {
	cmd := exec.Command("ip", args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}

func inNamespace(namespace string, f func() error) error {
	return visit(namespace, func(func() error) error { return f() })
}

// visit calls f on a thread inside the namespace until f calls leave, or at the latest until it
// returns.
func visit(namespace string, f func(leave func() error) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		back, err := enter(namespace)
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("entering namespace %s: %w", namespace, err)
			return
		}
		// A thread that cannot return is never unlocked: it ends with this goroutine, so that
		// nothing else can run on it.
		leave := sync.OnceValue(func() error {
			err := back()
			if err == nil {
				runtime.UnlockOSThread()
			}
			return err
		})
		err = f(leave)
		leave()
		done <- err
	}()
	return <-done
}

// enter moves the calling thread into the namespace; leave moves it back.
func enter(namespace string) (leave func() error, err error) {
	target, err := os.Open(path(namespace))
	if err != nil {
		return nil, err
	}
	defer target.Close()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		home.Close()
		return nil, err
	}
	return func() error {
		defer home.Close()
		return unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
	}, nil
}

// killDeadline bounds the time that a killed process may take to end.
const killDeadline = time.Minute

// killAll kills every process in the namespace, and those that they fork meanwhile, until none
// is left.
func killAll(namespace string) error {
	for start := time.Now(); time.Since(start) < killDeadline; {
		out, err := ipOutput("netns", "pids", namespace)
		if err != nil {
			return err
		}
		pids := strings.Fields(string(out))
		if len(pids) == 0 {
			return nil
		}
		for _, field := range pids {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return fmt.Errorf("ip netns pids %s: %w", namespace, err)
			}
			if pid == os.Getpid() {
				continue // its main thread, which is inside briefly
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending process %d in namespace %s: %w", pid, namespace, err)
			}
		}
	}
	return fmt.Errorf("processes in namespace %s outlived SIGKILL for %v", namespace, killDeadline)
}
