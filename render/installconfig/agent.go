package installconfig

import (
	"fmt"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// ReadAgentConfig returns the agent-config in data and every problem that it
// shows by itself, sorted by position. The config is nil when the file is not
// YAML; otherwise it holds what could be read.
func ReadAgentConfig(name string, data []byte) (*AgentConfig, problem.List) {
	doc, problems := source.Parse(name, data)
	if doc == nil {
		return nil, problems
	}
	return ReadAgentDocument(doc)
}

// ReadAgentDocument is ReadAgentConfig for a parsed file, or for a view of other objects as an
// agent-config.
func ReadAgentDocument(doc *source.Document) (*AgentConfig, problem.List) {
	var in agentFile
	r := newReader(doc, doc.Decode(&in))
	c := &AgentConfig{Doc: doc}
	r.agentVersion(&in)
	if a := in.RendezvousIP; a.IsValid() && r.usable(a, "rendezvousIP") {
		c.RendezvousIP = &Address{Addr: a, Field: "rendezvousIP"}
	}
	first := map[string]string{}
	for i, h := range in.Hosts {
		field := fmt.Sprintf("hosts[%d]", i)
		c.Hosts = append(c.Hosts, Host{
			Name:      r.hostName(field+".hostname", h.Hostname, first),
			Role:      r.role(field+".role", h.Role),
			Field:     field,
			Addresses: r.stateAddresses(field+".networkConfig", &h.NetworkConfig),
		})
	}
	return c, r.report()
}

func (r *reader) agentVersion(in *agentFile) {
	switch v := in.APIVersion; v {
	case "v1alpha1", "v1beta1":
	case "":
		r.missing("apiVersion", `"v1beta1"`)
	default:
		r.add(problem.WrongKind, "apiVersion", problem.Quote(v), `"v1beta1" or "v1alpha1"`, "")
	}
	// The installer ignores kind.
	if in.Kind != "" && in.Kind != "AgentConfig" {
		r.add(problem.WrongKind, "kind", problem.Quote(in.Kind), `"AgentConfig"`, "")
	}
}
