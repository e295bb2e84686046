package status

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
)

// Limits of the state, far above any cluster's: Kubernetes has at most 5,000 nodes.
const (
	maxNodes = 10_000
	maxState = 4 << 20 // bytes of a node's file, as in the agents
)

// Reader collects the state of nodes, file by file. Its zero value is ready to use.
type Reader struct {
	nodes    map[string]*Node
	findings []Finding
	// full is set where there were more than maxNodes.
	full bool
}

// Relevant reports whether a file of a directory may hold state, by its path: JSON, and in a
// must-gather only the Nodes.
func Relevant(name string) bool {
	inside := func(folder string) bool { return strings.Contains("/"+name, "/"+folder+"/") }
	if inside("cluster-scoped-resources") {
		return inside("cluster-scoped-resources/core/nodes")
	}
	return path.Ext(name) == ".json" && !inside("namespaces")
}

// Add reads a file, named with slashes: the output of `vipgen-agent status -o json` on one node
// or on several, or exported Nodes. It reports whether it was either. Torn or invalid files
// become findings.
func (r *Reader) Add(name string, data []byte) bool {
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		r.Unreadable(name, errors.New("it is empty"))
		return true
	case len(data) > maxState && !bytes.Contains(data, []byte("kind")): // exported Nodes are large in large clusters
		return r.broken(name, data, fmt.Errorf("more than %d MiB", maxState>>20))
	}
	// Reports of early agents have no kind.
	report := bytes.Contains(data, []byte(`"`+state.ReportKind+`"`)) || !bytes.Contains(data, []byte(`"kind"`))
	if !report || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return r.addNodes(name, data)
	}
	return r.addReports(name, data)
}

// maxOther is the size in bytes up to which a broken file counts as a node's state even if it
// mentions no job.
const maxOther = 64 << 10

// broken reports a finding for an unreadable file if it is, or may have been, the state of a
// node. A must-gather contains unrelated JSON.
func (r *Reader) broken(name string, data []byte, err error) bool {
	mentions := func(job string) bool { return bytes.Contains(data, []byte(`"`+job+`"`)) }
	if len(data) > maxOther && !slices.ContainsFunc(jobNames(), mentions) {
		return false
	}
	r.Unreadable(name, err)
	return true
}

// addReports reads the output of agents, one after the other.
func (r *Reader) addReports(name string, data []byte) (known bool) {
	stream := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := stream.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return known
		}
		var report state.Report
		if err == nil {
			err = json.Unmarshal(raw, &report)
		}
		switch {
		case err != nil:
			return r.broken(name, data, err) || known
		case report.Empty() && report.Version == "":
			continue // another kind of object
		}
		known = true
		r.addReport(name, report)
	}
}

func (r *Reader) addReport(name string, report state.Report) {
	n := r.node(cmp.Or(valid(report.Node), nameOf(name)), name)
	if n == nil || report.Time.Before(n.Time) {
		return // the latest counts
	}
	n.report, n.Version, n.Time = report, report.Version, report.Time
}

// addNodes reads exported Nodes with the reports of their agents.
func (r *Reader) addNodes(name string, data []byte) (known bool) {
	objects, err := ignition.Objects(data)
	if err != nil {
		r.Unreadable(name, errors.New("neither JSON of 'vipgen-agent status -o json' nor exported Nodes"))
		return true
	}
	for _, raw := range objects {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name        string `json:"name"`
				Annotations struct {
					// VRRP is the settings that the node's agent reports.
					VRRP string `json:"vipgen.io/vrrp"`
				} `json:"annotations"`
			} `json:"metadata"`
		}
		if json.Unmarshal(raw, &o) != nil || o.Kind != "Node" || valid(o.Metadata.Name) == "" {
			continue
		}
		known = true
		if n := r.node(o.Metadata.Name, ""); n != nil {
			var said struct {
				Running string `json:"running"`
			}
			if json.Unmarshal([]byte(o.Metadata.Annotations.VRRP), &said) == nil {
				n.Settings = said.Running
			}
		}
	}
	return known
}

// node returns the node with a name, added if new, and records a file of its state; nil where
// there are too many.
func (r *Reader) node(name, file string) *Node {
	if r.nodes == nil {
		r.nodes = map[string]*Node{}
	}
	n := r.nodes[name]
	if n == nil {
		if r.full = r.full || len(r.nodes) >= maxNodes; r.full {
			return nil
		}
		n = &Node{Name: name, Files: []string{}}
		r.nodes[name] = n
	}
	if file != "" && !slices.Contains(n.Files, file) {
		n.Files = append(n.Files, file)
	}
	return n
}

// Unreadable reports a finding for an unreadable file.
func (r *Reader) Unreadable(name string, err error) {
	if len(r.findings) < maxNodes {
		r.findings = append(r.findings, Finding{Code: unreadable, Text: fmt.Sprintf("%s cannot be read: %v", name, err)})
	}
}

// valid returns a valid name of a node, else "".
func valid(name string) string {
	if v1alpha1.ValidName(name) {
		return name
	}
	return ""
}

// nameOf returns the node of a file, by its own name or by its directory's: master-0.json,
// master-0/status.json.
func nameOf(name string) string {
	own := strings.TrimSuffix(path.Base(name), path.Ext(name))
	if own == "status" {
		own = path.Base(path.Dir(name))
	}
	return cmp.Or(valid(own), "unknown")
}

func jobNames() (out []string) {
	for _, j := range []state.Job{state.Keepalived{}, state.BGP{}, state.HAProxy{}, state.Firewall{}, state.CoreDNS{}, state.MDNS{}} {
		out = append(out, j.JobName())
	}
	return out
}
