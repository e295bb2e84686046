// Package unit renders the systemd units of a node: those that choose the node's address
// before kubelet starts, and those that add the node's own DNS server to resolv.conf.
// They run the agent from its image, because no pod runs yet.
package unit

import (
	"embed"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Params is the data of the unit templates.
type Params struct {
	// AgentImage is the image with vipgen-agent.
	AgentImage string
	// AuthFile holds the credentials to pull it; empty means podman's own.
	AuthFile string
	// Hints are the applicable variables of /etc/default/nodeip-configuration.
	Hints []string
}

// Unit is a systemd unit.
type Unit struct {
	Name     string
	Enabled  bool
	Contents string
}

// units use the operator's own names, so that they replace its units, and keep what
// those guarantee to others (order, RequiredBy, environment files). They support systemd
// from 239 on, the version of OpenShift 4.12: it refuses oneshot services with Restart=
// (service_verify in its source), and has no ExecCondition=. The commands contain no
// specifiers or variables, which systemd expands even in quotes.
var units = []struct {
	name    string
	enabled bool
}{
	{"nodeip-configuration.service", true},
	{"on-prem-resolv-prepender.path", true},
	{"on-prem-resolv-prepender.service", true},
}

// Render renders the units of every node.
func Render(p Params) ([]Unit, error) {
	var out []Unit
	for _, u := range units {
		contents, err := parsed.Run(u.name, p)
		if err != nil {
			return nil, err
		}
		out = append(out, Unit{Name: u.name, Enabled: u.enabled, Contents: string(contents)})
	}
	return out, nil
}
