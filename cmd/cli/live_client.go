package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lazy"
)

// clientVariable is the environment variable that names the client.
const clientVariable = "VIPGEN_CLIENT"

// clientPrograms are the clients to search in PATH, in order.
var clientPrograms = []string{"kubectl", "oc"}

// kubeClient reads a running cluster through the user's own client, kubectl or oc, as a child
// process: with the user's kubeconfig, contexts, proxies, credential plugins and rights. It
// gets the objects that `vipgen adopt` reads, and runs vipgen-agent in the pod keepalived of
// each node. It writes nothing to the cluster, and gets no Secrets.
type kubeClient struct {
	// program is its name or path; empty for the first of clientPrograms in PATH.
	program string
	// flags select the cluster and the user.
	flags []string
	// in and err are the terminal of the user, for credential plugins.
	in  io.Reader
	err io.Writer
}

// find sets program.
func (c *kubeClient) find() error {
	names := clientPrograms
	if c.program != "" {
		names = []string{c.program}
	} else if name := os.Getenv(clientVariable); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			c.program = path
			return nil
		}
	}
	return fmt.Errorf("%s is not in PATH: install kubectl or oc, or name the program by --client or %s", strings.Join(names, " or "), clientVariable)
}

type clientFailure struct {
	// line is the command line, and shown is set where the user has seen the error.
	line   string
	shown  bool
	stderr string
	err    error
}

// lines returns the lines of standard error, and the last: kubectl's own, after its warnings
// and the output of a program in a pod.
func (f *clientFailure) lines() (all []string, last string) {
	all = strings.Split(strings.TrimSpace(f.stderr), "\n")
	return all, all[len(all)-1]
}

// Error returns the reason, in one line.
func (f *clientFailure) Error() string {
	all, last := f.lines()
	switch {
	case last == "":
		return f.err.Error()
	case f.shown:
		return fmt.Sprintf("%s: %v", f.line, f.err)
	case strings.HasPrefix(last, "command terminated with exit code ") && len(all) > 1:
		return all[0] + " (" + last + ")"
	}
	return strings.TrimPrefix(last, "error: ")
}

// forbidden reports whether a right is missing; kubectl's message names it.
func (f *clientFailure) forbidden() bool {
	_, last := f.lines()
	return strings.HasPrefix(last, "Error from server (Forbidden): ")
}

// notFound reports whether the API server lacks the named object.
func (f *clientFailure) notFound() bool {
	_, last := f.lines()
	return strings.HasPrefix(last, "Error from server (NotFound): ")
}

// noType matches kubectl's error for a kind that the API server does not have.
var noType = lazy.Regexp(`the server doesn't have a resource type "([^"]+)"`)

// lacks returns the kind that the API server does not have, or "" for another clientFailure.
func (f *clientFailure) lacks() string {
	if m := noType().FindStringSubmatch(f.stderr); m != nil {
		return m[1]
	}
	return ""
}

// run runs the client and returns its output, up to most bytes. With show, its standard error
// reaches the user, and so do the questions of credential plugins.
func (c *kubeClient) run(ctx context.Context, most int, show bool, args ...string) ([]byte, *clientFailure) {
	const afterKill = time.Second // a credential plugin of the client may keep the pipes open
	var out, stderr boundedBuffer
	out.most, stderr.most = most, 1<<16
	cmd := exec.CommandContext(ctx, c.program, slices.Concat(args[:1], c.flags, args[1:])...)
	cmd.WaitDelay = afterKill
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if show {
		cmd.Stdin, cmd.Stderr = c.in, io.MultiWriter(c.err, &stderr)
	}
	err := cmd.Run()
	said := stderr.buffer.String()
	switch {
	case ctx.Err() != nil:
		err, said = context.Cause(ctx), ""
	case out.over:
		err, said = fmt.Errorf("%s printed more than %d MiB", filepath.Base(c.program), most>>20), ""
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return out.buffer.Bytes(), nil
	}
	line := strings.Join(append([]string{filepath.Base(c.program)}, args...), " ")
	return nil, &clientFailure{line, show && said != "", said, err}
}

// boundedBuffer keeps the first bytes that are written.
type boundedBuffer struct {
	buffer bytes.Buffer // not embedded: its ReadFrom has no limit
	most   int
	over   bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	fits := p[:min(len(p), b.most-b.buffer.Len())]
	b.over = b.over || len(fits) < len(p)
	b.buffer.Write(fits)
	return len(p), nil
}
