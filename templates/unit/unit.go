// Package unit makes the systemd units of a node: those that choose the node's
// address before kubelet starts, and those that put the node's own DNS server
// into resolv.conf. They run the agent from its image, since no pod runs yet.
package unit

import (
	"embed"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Params is what the unit templates are executed with.
type Params struct {
	// AgentImage holds vipgen-agent.
	AgentImage string
	// AuthFile has the credentials to pull it with; empty means podman's own.
	AuthFile string
	// Hints are the variables of /etc/default/nodeip-configuration that count.
	Hints []string
}

// Unit is a systemd unit.
type Unit struct {
	Name     string
	Enabled  bool
	Contents string
}

// The units use the operator's own names, so that they replace its: what its
// promised to others (order, RequiredBy, environment files), these promise too.
// They are for every systemd since 239, which OpenShift 4.12 has: it refuses
// oneshot services with Restart= (service_verify in its source), and knows no
// ExecCondition=. The commands hold no specifiers or variables, which systemd
// replaces also between quotes.
var units = []struct {
	name    string
	enabled bool
}{
	{"nodeip-configuration.service", true},
	{"on-prem-resolv-prepender.path", true},
	{"on-prem-resolv-prepender.service", true},
}

// Render makes the units of every node.
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
