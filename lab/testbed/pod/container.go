package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/lab/testbed/container"
)

// Container is a container of a pod, through all of its restarts.
type Container struct {
	Name string

	pod  *Pod
	spec *corev1.Container
	// logs is the number of logs of earlier pods with the same UID, which is the manifest's:
	// kubelet continues the numbering.
	logs int

	mu      sync.Mutex
	current *container.Container // nil before the first start
	status  Status
	back    restarts
}

// Status is kubelet's status of a container.
type Status struct {
	Running bool
	// Restarts is the number of restarts.
	Restarts int
	// Started is the time of the last start.
	Started time.Time
	// LastExit is the exit code of the previous run, -1 if there is none; LastReason is the reason
	// why it ended.
	LastExit   int
	LastReason Reason
}

// Reason is the reason why a container ended.
type Reason string

const (
	reasonCompleted Reason = "Completed"  // exit code 0
	reasonError     Reason = "Error"      // any other exit code
	reasonUnhealthy Reason = "Unhealthy"  // liveness probe failed
	reasonStart     Reason = "StartError" // the runtime could not start it
	reasonStopped   Reason = "Stopped"    // stopped with its pod
)

func newContainer(p *Pod, spec *corev1.Container) *Container {
	c := &Container{Name: spec.Name, pod: p, spec: spec, status: Status{LastExit: -1}}
	for ; ; c.logs++ {
		if _, err := os.Stat(p.kubelet.Host.Path(c.logFile(0))); err != nil {
			return c
		}
	}
}

// Status returns the current status of the container.
func (c *Container) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// complete runs an init container until it has ended with exit code 0.
func (c *Container) complete(ctx, starting context.Context) bool {
	for starting.Err() == nil {
		if code := c.once(ctx, starting); code == 0 {
			return true
		}
		c.backOff(starting)
	}
	return false
}

// keep runs a container and restarts it, until starting is done.
func (c *Container) keep(ctx, starting context.Context) {
	for starting.Err() == nil {
		c.once(ctx, starting)
		c.backOff(starting)
	}
}

// backOff waits until kubelet would restart the container.
func (c *Container) backOff(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	at := c.pod.kubelet.BackOff.next(&c.back, time.Now())
	if wait := time.Until(at); wait > 0 {
		c.pod.event("back-off", "container", c.Name, "for", wait.Round(time.Millisecond))
		pause(ctx, wait)
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.status.Restarts++
		c.mu.Unlock()
	}
}

// once runs the container from its start to its end.
func (c *Container) once(ctx, starting context.Context) (exitCode int) {
	running, err := c.start()
	if err != nil {
		return c.recordEnd(128, reasonStart, err.Error())
	}
	unhealthy := make(chan struct{})
	alive, cancel := context.WithCancel(starting)
	var prober sync.WaitGroup
	prober.Go(func() { c.probe(alive, running, unhealthy) })
	reason := reasonError
	select {
	case <-running.Done():
	case <-starting.Done():
		reason = reasonStopped
		err = running.Stop(ctx, c.pod.grace())
	case <-unhealthy:
		reason = reasonUnhealthy
		err = running.Stop(ctx, c.probeGrace())
	}
	cancel()
	prober.Wait()
	if err != nil {
		c.pod.event("a container does not end", "container", c.Name, "error", err)
	}
	code := running.ExitCode()
	if code == 0 && reason == reasonError {
		reason = reasonCompleted
	}
	return c.recordEnd(code, reason, "")
}

func (c *Container) recordEnd(code int, reason Reason, why string) int {
	c.mu.Lock()
	c.status.Running, c.status.LastExit, c.status.LastReason = false, code, reason
	c.mu.Unlock()
	args := []any{"container", c.Name, "exitCode", code, "reason", reason}
	if why != "" {
		args = append(args, "error", why)
	}
	c.pod.event("container ended", args...)
	return code
}

func (c *Container) start() (*container.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg := c.pod.config(c.spec, c.pod.places)
	cfg.ID = fmt.Sprintf("%s-%s-%s-%d", c.pod.Name, c.pod.UID[:8], c.Name, time.Now().UnixNano())
	cfg.Log = c.pod.kubelet.Host.Path(c.logFile(c.status.Restarts))
	running, err := container.Start(c.pod.kubelet.Host, cfg)
	if err != nil {
		return nil, err
	}
	c.current = running
	c.status.Running, c.status.Started = true, time.Now()
	c.pod.event("container started", "container", c.Name, "restarts", c.status.Restarts)
	return running, nil
}

// logFile returns the file of a run's output on the host.
func (c *Container) logFile(restart int) string {
	return fmt.Sprintf("%s/%s/%d.log", c.pod.logDir(), c.Name, c.logs+restart)
}

// Log returns the output of all runs of the container since its pod started.
func (c *Container) Log() string {
	var b strings.Builder
	for i := range c.Status().Restarts + 1 {
		data, err := os.ReadFile(filepath.Clean(c.pod.kubelet.Host.Path(c.logFile(i))))
		if err == nil {
			b.Write(data)
		}
	}
	return b.String()
}

// LogSize returns the length of Log in bytes.
func (c *Container) LogSize() (n int64) {
	for i := range c.Status().Restarts + 1 {
		if info, err := os.Stat(c.pod.kubelet.Host.Path(c.logFile(i))); err == nil {
			n += info.Size()
		}
	}
	return n
}

var errNotStarted = errors.New("the container was not started yet")

// Running returns the current or last run of the container.
func (c *Container) Running() (*container.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, errNotStarted
	}
	return c.current, nil
}

// Signal sends a signal to the container's first process.
func (c *Container) Signal(s syscall.Signal) error {
	running, err := c.Running()
	if err != nil {
		return err
	}
	return running.Signal(s)
}

// Exec runs a program in the container and returns its output and exit code.
func (c *Container) Exec(ctx context.Context, args ...string) (string, int, error) {
	running, err := c.Running()
	if err != nil {
		return "", 0, err
	}
	return running.Exec(ctx, args...)
}
