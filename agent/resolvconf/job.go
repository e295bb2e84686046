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
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Paths on the host.
const (
	// Source is where NetworkManager writes what the network brings.
	Source = "/run/NetworkManager/resolv.conf"
	// resolvConf is what every program reads.
	resolvConf = "/etc/resolv.conf"
	// dropIn is for systemd-resolved.
	dropIn = "/etc/systemd/resolved.conf.d/60-vipgen.conf"
	// doneFile says that the node's own DNS server is in place; a drop-in that
	// OpenShift ships for kubelet waits for a file of this name.
	doneFile = "/run/resolv-prepender-kni-conf-done"
)

// most bytes that are read of a resolv.conf.
const mostBytes = 1 << 20

// Between looks at a source without nameservers.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Job writes the configuration of a node.
type Job struct {
	Spec *v1alpha1.ClusterConfigSpec
	Log  *slog.Logger
	// Root is where the host's file system is.
	Root string
	// Address is the node's own, which its DNS server listens on.
	Address netip.Addr
	// Own are all of the node's addresses and VIPs those of the cluster.
	Own, VIPs []netip.Addr
	// Reload makes systemd-resolved read its configuration; ReloadResolved
	// outside tests.
	Reload func(ctx context.Context, root string) error
	// Changed tells NetworkManager that name servers changed;
	// ReloadNetworkManager outside tests.
	Changed func(ctx context.Context, root string) error
}

// Run writes what NetworkManager's file says now, once it names a nameserver.
// Nothing is written, or reloaded, that is right already.
func (j *Job) Run(ctx context.Context) error {
	if usesResolved(j.Root) {
		return j.runResolved(ctx)
	}
	if err := j.runPlain(ctx); err != nil {
		return err
	}
	return j.done()
}

// runPlain goes on until the source stands still: a change while the unit is
// still running would start it no second time.
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
		changed, err := atomicfile.Write(filepath.Join(j.Root, resolvConf), want.marshal(), 0o644)
		if err != nil {
			return err
		}
		if changed {
			j.Log.Info("wrote resolv.conf", "path", resolvConf, "nameservers", want.Nameservers, "search", want.Search)
			// NetworkManager looks the host's name up by its address: until then a
			// node without a name of its own stays "localhost".
			if err := j.Changed(ctx, j.Root); err != nil {
				j.Log.Warn("NetworkManager does not look up the host's name again", "error", err)
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

// source is what a resolv.conf is made from.
type source struct {
	network []byte // NetworkManager's resolv.conf
	domains []byte // the dispatcher's file
}

func (s source) equal(o source) bool {
	return bytes.Equal(s.network, o.network) && bytes.Equal(s.domains, o.domains)
}

// source waits until NetworkManager's file has a nameserver, unless the cluster
// brings its own upstreams.
func (j *Job) source(ctx context.Context) (source, error) {
	said := false
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		s, err := j.read()
		if err != nil {
			return s, err
		}
		if len(Parse(s.network).Nameservers) > 0 || len(j.Spec.DNS.Upstreams) > 0 {
			return s, nil
		}
		if !said {
			j.Log.Info("waiting for a nameserver from the network", "path", Source)
			said = true
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("no nameserver in %s: %w", Source, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// read reads both files; nothing of one that is not there.
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

// runResolved reloads systemd-resolved also when the file is right but an
// earlier run did not come to its end.
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
	changed, err := atomicfile.Write(path, data, 0o644)
	if err != nil {
		return err
	}
	done := filepath.Join(j.Root, doneFile)
	if changed {
		if _, err := atomicfile.Remove(done); err != nil {
			return err
		}
		j.Log.Info("wrote a drop-in of systemd-resolved", "path", dropIn, "nameserver", j.Address)
	}
	if _, err := os.Lstat(done); err == nil {
		return nil
	}
	if err := j.Reload(ctx, j.Root); err != nil {
		return err
	}
	return j.done()
}

// routed are the domains besides the cluster's own that the nodes' DNS servers
// know names of.
func routed(spec *v1alpha1.ClusterConfigSpec) []string {
	var out []string
	for _, g := range spec.Groups {
		out = append(out, g.Domains...)
	}
	for _, r := range spec.DNS.Records {
		out = append(out, strings.TrimPrefix(r.Name, "*."))
	}
	return out
}

func (j *Job) done() error {
	_, err := atomicfile.Write(filepath.Join(j.Root, doneFile), nil, 0o644)
	return err
}
