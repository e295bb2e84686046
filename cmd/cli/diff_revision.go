package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/input"
)

// revision is a path in a revision of the Git repository around the working directory, in Git's
// syntax REV:PATH.
type revision struct {
	arg   string
	blobs map[string]string // object by path
	batch *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// gitCommand returns a Git command that reads objects and runs nothing. A repository's
// configuration is untrusted, and the only part of it that reading uses is the transport to a
// remote: for a missing object of a partial clone. Settings of user and system stay: they define
// which repositories are safe (safe.directory).
func gitCommand(args ...string) *exec.Cmd {
	c := exec.Command("git", append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	c.Env = append(os.Environ(),
		"GIT_NO_LAZY_FETCH=1",     // Git 2.39.4 and later fetch nothing
		"GIT_ALLOW_PROTOCOL=none", // older ones: no protocol, whatever protocol.*.allow is
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
	)
	return c
}

// maxListing bounds the list of a revision's files, in bytes: a few objects can make a tree
// of billions of files.
const maxListing = 32 << 20

func git(args ...string) ([]byte, error) {
	c := gitCommand(args...)
	var errOut bytes.Buffer
	c.Stderr = &errOut
	pipe, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(pipe, maxListing+1))
	if len(out) > maxListing {
		_ = c.Process.Kill()
		_ = c.Wait()
		return nil, fmt.Errorf("git %s: more than %d MiB: name a folder with fewer files", args[0], maxListing>>20)
	}
	if err = errors.Join(err, c.Wait()); err != nil {
		if said := strings.TrimSpace(errOut.String()); said != "" {
			err = errors.New(said)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}

// openRevision lists the files of a revision's folder, or the one file. Links and submodules
// are skipped.
func openRevision(arg string) (*revision, error) {
	bad := func(err error) error {
		return problem.List{{File: arg, Severity: problem.Error, Code: problem.Unreadable, Found: err.Error(),
			Expected: "a file, a folder, or REV:PATH in the Git repository around the working directory"}}
	}
	object, err := git("rev-parse", "--verify", "--quiet", "--end-of-options", arg)
	if err != nil {
		return nil, bad(fmt.Errorf("no such file, and no such revision or path in it (%w)", err))
	}
	id := strings.TrimSpace(string(object))
	kind, err := git("cat-file", "-t", id)
	if err != nil {
		return nil, bad(err)
	}
	r := &revision{arg: arg, blobs: map[string]string{}}
	switch strings.TrimSpace(string(kind)) {
	case "blob":
		_, name, _ := strings.Cut(arg, ":")
		r.blobs[path.Base(name)] = id
	case "tree":
		listing, err := git("ls-tree", "-r", "-z", "--full-tree", id)
		if err != nil {
			return nil, bad(err)
		}
		r.parse(string(listing))
	default:
		return nil, bad(fmt.Errorf("a %s", strings.TrimSpace(string(kind))))
	}
	return r, r.start()
}

// parse parses the output of git ls-tree -z: "MODE TYPE OBJECT\tPATH\0".
func (r *revision) parse(listing string) {
	for entry := range strings.SplitSeq(listing, "\x00") {
		about, name, ok := strings.Cut(entry, "\t")
		words := strings.Fields(about)
		if !ok || len(words) != 3 || !strings.HasPrefix(words[0], "100") {
			continue // a link or a submodule
		}
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue
		}
		r.blobs[name] = words[2]
	}
}

// start starts the process that returns contents.
func (r *revision) start() error {
	r.batch = gitCommand("cat-file", "--batch")
	in, err := r.batch.StdinPipe()
	if err != nil {
		return err
	}
	out, err := r.batch.StdoutPipe()
	if err != nil {
		return err
	}
	r.in, r.out = in, bufio.NewReader(out)
	return r.batch.Start()
}

func (r *revision) list() ([]string, error) {
	return slices.Collect(maps.Keys(r.blobs)), nil
}

// read requests an object: the answer is "OBJECT TYPE SIZE
// ", contents, "
// ".
func (r *revision) read(name string) ([]byte, error) {
	if _, err := fmt.Fprintln(r.in, r.blobs[name]); err != nil {
		return nil, err
	}
	head, err := r.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	words := strings.Fields(head)
	if len(words) != 3 {
		return nil, fmt.Errorf("git cat-file: %s: %s", name, strings.TrimSpace(head))
	}
	size, err := strconv.Atoi(words[2])
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %s: %w", name, err)
	}
	if size > input.MaxFile {
		return nil, input.Unreadable(r.arg+"/"+name, fmt.Errorf("larger than %d MiB", input.MaxFile>>20))
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(r.out, data); err != nil {
		return nil, fmt.Errorf("git cat-file: %s: %w", name, err)
	}
	return data[:size], nil
}

func (r *revision) close() error {
	return errors.Join(r.in.Close(), r.batch.Wait())
}
