package externallb

import (
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// singleHost is the name of a load balancer without a pair.
const singleHost = "load-balancer"

// Want selects the output of a plan.
type Want struct {
	// Format is render.FormatFiles, FormatIgnition or FormatButane.
	Format render.Format
	// OS is the hosts' operating system, for all formats but files: ignition.FCOS or
	// ignition.OpenShift, which is Red Hat's CoreOS.
	OS string
}

// Hosts returns the names of the load balancer's hosts.
func (p *Plan) Hosts() []string {
	if len(p.Pair) == 0 {
		return []string{singleHost}
	}
	return lists.Map(p.Pair, func(h Host) string { return h.Name })
}

// Files returns the files of every host, by host.
func (p *Plan) Files(w Want) ([]render.OutputFile, error) {
	var enc *ignition.Encoder
	if w.Format != render.FormatFiles {
		target, err := ignition.ParseTarget(w.OS, "")
		if err != nil {
			return nil, err
		}
		enc = ignition.NewEncoder(target)
	}
	var out []render.OutputFile
	for _, host := range p.Hosts() {
		b, err := p.bundle(host, w)
		if err != nil {
			return nil, err
		}
		files, err := render.Encode(enc, w.Format, b, ignition.Metadata{})
		if err != nil {
			return nil, fmt.Errorf("load balancer %s: %w", host, err)
		}
		out = append(out, files...)
	}
	return out, nil
}

func (p *Plan) bundle(host string, w Want) (ignition.Bundle, error) {
	b := ignition.Bundle{Role: host}
	daemons := []daemon{haproxy}
	if len(p.Pair) > 0 {
		daemons = append(daemons, keepalived)
	}
	for _, d := range daemons {
		text, err := d.config(p, host, w)
		if err != nil {
			return b, err
		}
		b.Files = append(b.Files, ignition.File{Path: d.dir + "/" + d.file, Mode: 0o644, Contents: text})
		if w.Format == render.FormatFiles {
			continue
		}
		u := d.unit
		u.Cluster, u.Dir, u.Image = p.Cluster, d.dir, d.image(p)
		if text, err = parsed.Run("container.service", &u); err != nil {
			return b, err
		}
		enabled := true
		b.Units = append(b.Units, ignition.Unit{Name: u.Name + ".service", Enabled: &enabled, Contents: string(text)})
	}
	return b, b.Sort()
}

type daemon struct {
	dir, file string
	config    func(p *Plan, host string, w Want) ([]byte, error)
	image     func(p *Plan) string
	unit      Unit
}

var haproxy = daemon{
	dir: "/etc/haproxy", file: "haproxy.cfg",
	config: func(p *Plan, _ string, w Want) ([]byte, error) {
		conf := p.proxy
		if w.Format == render.FormatFiles {
			conf.User = "haproxy" // as in Debian's and Red Hat's packages
		}
		return parsed.Run("haproxy.cfg", &conf)
	},
	image: func(p *Plan) string { return p.images.HAProxy },
	unit: Unit{
		Name: "vipgen-lb-haproxy", Capabilities: []string{"NET_BIND_SERVICE"}, Reload: "USR2",
		Program: "haproxy", Args: "-W -db -f /etc/haproxy/haproxy.cfg",
	},
}

var keepalived = daemon{
	dir: "/etc/keepalived", file: "keepalived.conf",
	config: func(p *Plan, host string, _ Want) ([]byte, error) {
		i := slices.IndexFunc(p.Pair, func(h Host) bool { return h.Name == host })
		return parsed.Run("keepalived.conf", &p.Pair[i].keepalived)
	},
	image: func(p *Plan) string { return p.images.Keepalived },
	unit: Unit{
		Name: "vipgen-lb-keepalived", Capabilities: []string{"IPC_LOCK", "KILL", "NET_ADMIN", "NET_RAW", "SETGID", "SETUID", "SYS_NICE"}, Reload: "HUP",
		Program: "keepalived", Args: "--dont-fork --vrrp --log-console --use-file /etc/keepalived/keepalived.conf",
	},
}
