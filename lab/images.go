package lab

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/testbed/container"
)

// Programs holds paths of programs that a lab needs besides Debian's packages.
type Programs struct {
	// Agent is vipgen-agent.
	Agent string
	// Speaker is vipgen-bgp, which clusters with VIPs by BGP need.
	Speaker string
	// CoreDNS is coredns; if it is empty, the nodes run no DNS server.
	CoreDNS string
	// Etcd and APIServer are etcd and kube-apiserver, required for real API servers.
	Etcd, APIServer string
}

// images returns the content of the images that manifests name: the agent's image has only the
// agent, the others have the programs of this machine.
func (p Programs) images(names v1alpha1.Images) map[string]container.Image {
	debian := container.Image{Distribution: true}
	out := map[string]container.Image{
		names.Agent:      {Programs: map[string]string{"/usr/bin/vipgen-agent": p.Agent}},
		names.Keepalived: debian,
		names.HAProxy:    {Distribution: true, BindService: []string{"/usr/sbin/haproxy"}},
	}
	if p.Speaker != "" {
		out[names.Agent].Programs["/usr/bin/vipgen-bgp"] = p.Speaker
	}
	if p.CoreDNS != "" {
		out[names.CoreDNS] = container.Image{Distribution: true, Programs: map[string]string{"/coredns": p.CoreDNS}}
	}
	return out
}

// packages lists the Debian packages of the programs that a lab needs.
var packages = []struct{ program, name string }{
	{"haproxy", "haproxy"},
	{"ip", "iproute2"},
	{"keepalived", "keepalived"},
	{"nft", "nftables"},
	{"nsenter", "util-linux"},
	{"runc", "runc"},
	{"unshare", "util-linux"},
}

// Check returns an error that lists everything this machine lacks for a lab, and how to install it.
func (p Programs) Check() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("a lab makes network namespaces, which needs root: run it with sudo"))
	}
	for _, k := range packages {
		if _, err := exec.LookPath(k.program); err != nil {
			missing = append(missing, fmt.Errorf("%s is not installed: on Debian, apt-get install %s", k.program, k.name))
		}
	}
	for _, f := range []string{p.Agent, p.Speaker, p.CoreDNS, p.Etcd, p.APIServer} {
		if f == "" {
			continue
		}
		if info, err := os.Stat(f); err != nil {
			missing = append(missing, err)
		} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			missing = append(missing, fmt.Errorf("%s is not a program", f))
		} else if f == p.Agent {
			missing = append(missing, runsAlone(f))
		}
	}
	return errors.Join(missing...)
}

// runsAlone returns an error if vipgen-agent cannot run in its image, which contains no other file.
// The kernel reports the missing loader of a dynamically linked program as "no such file or
// directory", as if the program itself were missing.
func runsAlone(agent string) error {
	file, err := elf.Open(agent)
	if err != nil {
		return fmt.Errorf("%s is not a program of Linux: %w", agent, err)
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is linked dynamically, and the pods' image has no libraries: build it with 'make build', or 'CGO_ENABLED=0 go build ./cmd/vipgen-agent'", agent)
	}
	return nil
}

// FindPrograms fills in the programs that are not named: it searches the directory of the running
// program, its ../.cache/bin, as in a checkout, and then PATH. The agent is required, and for real
// API servers etcd and kube-apiserver; CoreDNS is optional.
func FindPrograms(named Programs, real bool) (Programs, error) {
	var err error
	find := func(path *string, name, target string, needed bool) {
		if *path != "" {
			absolute, e := filepath.Abs(*path) // runtimes run in another directory
			err = errors.Join(err, e)
			*path = absolute
			return
		}
		if *path = findProgram(name); *path == "" && needed {
			err = errors.Join(err, fmt.Errorf("%s is neither next to vipgen nor in PATH: build it with 'make %s' in a checkout of vipgen, or name it with --%s", name, target, strings.TrimPrefix(name, "vipgen-")))
		}
	}
	find(&named.Agent, "vipgen-agent", "build", true)
	find(&named.Speaker, "vipgen-bgp", "build", false)
	find(&named.CoreDNS, "coredns", "coredns", false)
	if real {
		find(&named.Etcd, "etcd", "tools", true)
		find(&named.APIServer, "kube-apiserver", "tools", true)
	}
	return named, err
}

func findProgram(name string) string {
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, "../.cache/bin", name)} {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return ""
	}
	return path
}
