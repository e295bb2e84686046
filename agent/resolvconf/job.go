package resolvconf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/lists"
)

// Paths on the host.
const (
	// Source is NetworkManager's resolv.conf, with the network's name servers.
	Source = "/run/NetworkManager/resolv.conf"
	// resolvConf is read by every program.
	resolvConf = "/etc/resolv.conf"
	// dropIn configures systemd-resolved.
	dropIn = "/etc/systemd/resolved.conf.d/60-vipgen.conf"
	// doneFile reports that the node's own DNS server is configured; a drop-in that
	// OpenShift ships for kubelet waits for a file of this name.
	doneFile = "/run/resolv-prepender-kni-conf-done"
)

// mostBytes bounds the read part of a resolv.conf.
const mostBytes = 1 << 20

// Bounds of the pause between reads of a source without nameservers.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Job configures the resolver of a node.
type Job struct {
	Spec *v1alpha1.ClusterConfigSpec
	Log  *slog.Logger
	// Root is the root of the host's file system.
	Root string
	// Address is the node's own address, at which its DNS server listens.
	Address netip.Addr
	// Own are all of the node's addresses, VIPs those of the cluster.
	Own, VIPs []netip.Addr
	// Reload makes systemd-resolved read its configuration; ReloadResolved outside tests.
	Reload func(ctx context.Context, root string) error
	// Changed notifies NetworkManager of changed name servers; ReloadNetworkManager
	// outside tests.
	Changed func(ctx context.Context, root string) error
}

// Run writes the configuration once NetworkManager's file has a nameserver. An unchanged
// one is not written or reloaded.
func (j *Job) Run(ctx context.Context) error {
	if usesResolved(j.Root) {
		return j.runResolved(ctx)
	}
	if err := j.runPlain(ctx); err != nil {
		return err
	}
	return j.done()
}

// runPlain repeats until the source is unchanged: a change while the unit is still
// running does not start it again.
func (j *Job) runPlain(ctx context.Context) error {
	for {
		source, err := j.source(ctx)
		if err != nil {
			return err
		}
		c := Parse(source.network)
		c.Search = append(c.Search, parseDomains(source.domains)...)
		upstreams := c.Upstreams(j.Own, j.VIPs)
		if fixed := j.Spec.DNS.Upstreams; len(fixed) > 0 {
			upstreams = Config{Nameservers: fixed}.Upstreams(j.Own, j.VIPs)
		}
		want := c.prepend(j.Address, upstreams, j.Spec.Domain)
		changed, err := fileio.Write(filepath.Join(j.Root, resolvConf), want.marshal(), 0o644)
		if err != nil {
			return err
		}
		if changed {
			j.Log.Info("resolv.conf written", "path", resolvConf, "nameservers", want.Nameservers, "search", want.Search)
			// NetworkManager then looks up the host's name by its address: until then a
			// node without a static name stays "localhost".
			if err := j.Changed(ctx, j.Root); err != nil {
				j.Log.Warn("cannot reload NetworkManager: it may not look up the host's name again", "error", err)
			}
		}
		if again, err := j.read(); err == nil && again.equal(source) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
}

type source struct {
	network []byte // NetworkManager's resolv.conf
	domains []byte // the dispatcher's file
}

func (s source) equal(o source) bool {
	return bytes.Equal(s.network, o.network) && bytes.Equal(s.domains, o.domains)
}

// source waits for a nameserver in NetworkManager's file, unless the cluster has its own
// upstreams.
func (j *Job) source(ctx context.Context) (source, error) {
	logged := false
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		s, err := j.read()
		if err != nil {
			return s, err
		}
		if len(Parse(s.network).Nameservers) > 0 || len(j.Spec.DNS.Upstreams) > 0 {
			return s, nil
		}
		if !logged {
			j.Log.Info("waiting for a nameserver from the network", "path", Source)
			logged = true
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("no nameserver in %s: %w", Source, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// read reads both files; a missing one is empty.
func (j *Job) read() (s source, err error) {
	if s.network, err = j.readFile(Source); err != nil {
		return s, err
	}
	s.domains, err = j.readFile(environment)
	return s, err
}

func (j *Job) readFile(path string) ([]byte, error) {
	f, err := os.Open(filepath.Join(j.Root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// runResolved reloads systemd-resolved even if the file is unchanged, when an earlier run
// did not finish.
func (j *Job) runResolved(ctx context.Context) error {
	path := filepath.Join(j.Root, dropIn)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	domains, err := j.readFile(environment)
	if err != nil {
		return err
	}
	data := resolvedDropIn(j.Address, j.Spec.Domain, parseDomains(domains), routed(j.Spec))
	changed, err := fileio.Write(path, data, 0o644)
	if err != nil {
		return err
	}
	done := filepath.Join(j.Root, doneFile)
	if changed {
		if _, err := fileio.Remove(done); err != nil {
			return err
		}
		j.Log.Info("drop-in of systemd-resolved written", "path", dropIn, "nameserver", j.Address)
	}
	if _, err := os.Lstat(done); err == nil {
		return nil
	}
	if err := j.Reload(ctx, j.Root); err != nil {
		return err
	}
	return j.done()
}

// routed returns the domains besides the cluster's own for which the nodes' DNS servers
// answer.
func routed(spec *v1alpha1.ClusterConfigSpec) []string {
	out := lists.FlatMap(spec.Groups, func(g v1alpha1.Group) []string { return g.Domains })
	for _, r := range spec.DNS.Records {
		out = append(out, strings.TrimPrefix(r.Name, "*."))
	}
	return out
}

func (j *Job) done() error {
	_, err := fileio.Write(filepath.Join(j.Root, doneFile), nil, 0o644)
	return err
}
