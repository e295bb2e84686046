package reference

import (
	"strings"
	"text/template"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
)

// render returns the files of a node. The manifests are last, so that pods start when all other
// files exist.
func render(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, images v1alpha1.Images) ([]file, error) {
	f, err := gather(c, n, images)
	if err != nil {
		return nil, err
	}
	root, err := parsed()
	if err != nil {
		return nil, err
	}
	r := &renderer{root: root, facts: f}
	r.keepalived()
	if f.HAProxy != nil {
		r.haproxy()
	}
	r.manifest("keepalived")
	if f.HAProxy != nil {
		r.manifest("haproxy")
	}
	return r.files, r.err
}

// KeepalivedConf returns the keepalived.conf of a node as today's monitor writes it, for tests that
// run keepalived without its pod. Its check scripts are below checkDir.
func KeepalivedConf(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error) {
	const any = "registry.example.com/any:1"
	f, err := gather(c, n, v1alpha1.Images{Keepalived: any, HAProxy: any})
	if err != nil {
		return nil, err
	}
	root, err := parsed()
	if err != nil {
		return nil, err
	}
	return templates.Run(root.Lookup("keepalived.conf"), f)
}

// renderer executes templates until the first error.
type renderer struct {
	root  *template.Template
	facts *facts
	files []file
	err   error
}

func (r *renderer) keepalived() {
	var vips strings.Builder
	for _, vip := range r.facts.VIPs {
		vips.WriteString(vip.String() + "\n")
	}
	r.files = append(r.files, file{path: keepalivedDir + "/vips", data: []byte(vips.String()), mode: 0o644})
	r.scripts(keepalivedDir, "run.sh", "monitor.sh", "keepalived.sh", "keepalived-alive.sh", "keepalived-monitor.sh")
	if r.facts.Bootstrap {
		r.scripts(keepalivedDir, "bootstrap.sh")
	} else {
		r.scripts(checkDir, "chk_default_ingress.sh")
	}
	if r.facts.HAProxy != nil {
		r.scripts(checkDir, "chk_ocp_lb.sh", "chk_ocp_both.sh", "chk_mcs.sh")
	}
	r.config("keepalived.conf", keepalivedDir, v1alpha1.KeepalivedConf)
}

func (r *renderer) haproxy() {
	r.scripts(haproxyDir, "run.sh", "monitor.sh", "haproxy-monitor.sh")
	r.rules("redirect.nft", r.facts.redirects())
	r.rules("no-redirect.nft", nil)
	r.config("haproxy.cfg", haproxyDir, v1alpha1.HAProxyConf)
}

func (r *renderer) scripts(dir string, names ...string) {
	for _, name := range names {
		r.files = append(r.files, file{path: dir + "/" + name, data: r.execute(name, r.facts), mode: 0o755})
	}
}

// config renders a daemon's configuration twice: the file that it starts with, and the monitor's
// copy.
func (r *renderer) config(name, dir, path string) {
	data := r.execute(name, r.facts)
	r.files = append(r.files,
		file{path: path, data: data, mode: 0o644, unless: dir + "/" + name},
		file{path: dir + "/" + name, data: data, mode: 0o644})
}

func (r *renderer) rules(name string, list []redirect) {
	data := r.execute("rules.nft", struct {
		Table     string
		Redirects []redirect
	}{table, list})
	r.files = append(r.files, file{path: haproxyDir + "/" + name, data: data, mode: 0o644})
}

func (r *renderer) manifest(pod string) {
	r.files = append(r.files, file{path: v1alpha1.ManifestDir + "/" + pod + ".yaml", data: r.execute(pod+".yaml", r.facts), mode: 0o644})
}

func (r *renderer) execute(name string, data any) []byte {
	if r.err != nil {
		return nil
	}
	text, err := templates.Run(r.root.Lookup(name), data)
	r.err = err
	return text
}
