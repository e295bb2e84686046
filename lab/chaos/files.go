package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/lab"
)

// files checks every file that the agent writes, after each change: it must be valid at any moment.
type files struct {
	owner   *run
	watcher *fsnotify.Watcher
	nodes   map[string]*lab.Node // by directory
	seen    map[string]bool      // valid files, by node and content
	scratch string
}

// written lists the directories that the agent writes to.
var written = []string{
	filepath.Dir(v1alpha1.KeepalivedConf), filepath.Dir(v1alpha1.HAProxyConf), filepath.Dir(v1alpha1.Corefile),
	jobDir(state.Keepalived{}), jobDir(state.HAProxy{}), jobDir(state.Firewall{}), jobDir(state.CoreDNS{}), jobDir(state.MDNS{}),
}

func jobDir(j state.Job) string { return v1alpha1.JobDir(j.JobName()) }

func watchFiles(ctx context.Context, r *run) (*files, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	f := &files{owner: r, watcher: w, nodes: map[string]*lab.Node{}, seen: map[string]bool{}, scratch: filepath.Join(r.cfg.Dir, "checked")}
	if err := os.MkdirAll(f.scratch, 0o755); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	for _, n := range r.cluster.Nodes() {
		for _, dir := range written {
			f.nodes[n.Path(dir)] = n
		}
		if err := f.follow(n); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return f, nil
}

// follow starts to watch the files of a node. It is called again after a reboot, which creates /run
// anew.
func (f *files) follow(n *lab.Node) error {
	for _, dir := range written {
		err := os.MkdirAll(n.Path(dir), 0o755)
		if err == nil {
			err = f.watcher.Add(n.Path(dir))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run checks changed files until ctx ends.
func (f *files) run(ctx context.Context) {
	defer f.watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-f.watcher.Errors:
			f.owner.fail(fmt.Errorf("watching files of nodes: %w", err))
			return
		case e := <-f.watcher.Events:
			if e.Has(fsnotify.Create) || e.Has(fsnotify.Write) {
				f.inspect(ctx, e.Name)
			}
		}
	}
}

// largest bounds the files that are checked: no agent writes larger ones.
const largest = 16 << 20

// inspect checks a file, if a program reads it.
func (f *files) inspect(ctx context.Context, path string) {
	n := f.nodes[filepath.Dir(path)]
	if n == nil {
		return
	}
	file, err := fileio.Named(path)
	if err != nil { // removed meanwhile, or a fault
		return
	}
	data, err := content(file)
	file.Close()
	if err != nil || len(data) > largest {
		return
	}
	key := fmt.Sprintf("%s %s %x", n.Name, path, sha256.Sum256(data))
	if f.seen[key] {
		return
	}
	at := f.owner.record.now()
	if err := f.check(ctx, n, path, data); err != nil && ctx.Err() == nil {
		f.owner.violate(Violation{Rule: invalidFile, From: at, To: at, Nodes: []string{n.Name}, Happened: fmt.Sprintf("%s on %s cannot be used: %v\n%s", filepath.Base(path), n.Name, err, data)})
	}
	f.seen[key] = true
}

// content reads a file as its readers do: on a full disk an agent overwrites its state.
func content(f *os.File) ([]byte, error) {
	if strings.HasSuffix(f.Name(), ".json") {
		return state.Settled(f)
	}
	return io.ReadAll(io.LimitReader(f, largest+1))
}

// check reads a file as its readers do: with the daemons' own parsers, as JSON or as cluster.yaml.
func (f *files) check(ctx context.Context, n *lab.Node, path string, data []byte) error {
	base := filepath.Base(path)
	switch {
	case base == filepath.Base(v1alpha1.KeepalivedConf):
		return f.parse(ctx, n, base, data, true, "keepalived", "-t", "-f")
	case base == filepath.Base(v1alpha1.HAProxyConf):
		return f.parse(ctx, n, base, data, false, "haproxy", "-c", "-f")
	case strings.HasSuffix(base, ".json"):
		if !json.Valid(data) {
			return errors.New("invalid JSON")
		}
	case base == ".vipgen-cluster.yaml":
		_, err := v1alpha1.LoadClusterConfig(base, data)
		return err
	case base == filepath.Base(v1alpha1.Corefile):
		if text := bytes.TrimSpace(data); len(text) == 0 || text[len(text)-1] != '}' {
			return errors.New("truncated")
		}
	}
	return nil
}

// parse has a daemon check a copy in the node's network namespace, which has its interfaces.
// keepalived reports errors without an exit code.
func (f *files) parse(ctx context.Context, n *lab.Node, base string, data []byte, silent bool, command ...string) error {
	if len(bytes.TrimSpace(data)) == 0 { // keepalived accepts an empty file
		return errors.New("empty file")
	}
	copied := filepath.Join(f.scratch, n.Name+"-"+base)
	if err := os.WriteFile(copied, data, 0o644); err != nil {
		return err
	}
	out, err := n.Command(ctx, command[0], append(command[1:], copied)...).CombinedOutput()
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && silent && len(bytes.TrimSpace(out)) > 0 {
		err = errors.New("errors in the output")
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
