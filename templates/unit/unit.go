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
	// Retry says that systemd knows Restart= for oneshot services (since 244;
	// OpenShift 4.12 has 239, which refuses the whole unit).
	Retry bool
}

// Unit is a systemd unit.
type Unit struct {
	Name     string
	Enabled  bool
	Contents string
}

// The units use the operator's own names, so that they replace its.
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
