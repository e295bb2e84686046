package adopt

import (
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
)

// Item is a file or unit with its treatment.
type Item struct {
	// Kind is file or unit.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Pools are the pools of the nodes that get it.
	Pools     []string         `json:"pools"`
	Treatment assets.Treatment `json:"treatment"`
	// Why is the contract's.
	Why string `json:"why,omitempty"`
	// Note describes a difference between the export and the contract.
	Note string `json:"note,omitempty"`
}

// Unknown is a file or unit of the operator that the contract does not list.
type Unknown struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is the operator's MachineConfig, the first by name that has it.
	From string `json:"machineConfig"`
	// Why it is unknown.
	Why string `json:"why"`
	// text is its content.
	text string
}

// roles are the pools of the contract. Nodes of others get the worker's.
var roles = []string{v1alpha1.RoleMaster, v1alpha1.RoleArbiter, v1alpha1.RoleWorker}

// conditions returns the contract's conditions that are true of a cluster; see assets.Entry.
func conditions(o *importer.Observed) []string {
	out := []string{o.Platform}
	switch o.Topology {
	case v1alpha1.TopologySingleReplica:
		out = append(out, "single")
	case v1alpha1.TopologyDualReplica:
		out = append(out, "fencing")
	case v1alpha1.TopologyHighlyAvailableArbiter:
		out = append(out, "arbiter")
	}
	switch {
	case !assets.PlatformNamed(o.Platform).HasVIPs():
		return append(out, "novips")
	case o.UserManaged:
		return append(out, "vips", "user-managed")
	}
	return append(out, "vips", "managed")
}

// contract returns the rows for nodes of a pool, by name.
func contract(words []string, pool, release string) map[string]assets.Entry {
	if !slices.Contains(roles, pool) {
		pool = v1alpha1.RoleWorker
	}
	out := map[string]assets.Entry{}
	for _, e := range assets.Contract {
		if e.Applies(words, pool, release) {
			out[e.Name] = e
		}
	}
	return out
}

// unknowns returns the operator's files and units of a pool for VIPs that the contract does not
// list, and the number of others.
func unknowns(export *diff.Cluster, words []string, pool, release string) (out []Unknown, others int) {
	rows := contract(words, pool, release)
	for _, item := range export.OperatorItems(pool) {
		u := Unknown{Kind: item.Kind, Name: item.Name, From: item.From, text: item.Text}
		row, known := rows[item.Name]
		switch {
		case known && row.Treatment == assets.Supplied:
			u.Why = "has none in OpenShift " + release + " by the contract, and vipgen has one of that name"
		case known && row.Treatment == assets.Replaced:
			// vipgen's unit would replace the operator's drop-ins.
			for _, d := range item.Dropins {
				out = append(out, Unknown{Kind: "drop-in", Name: item.Name + ".d/" + d.Name, From: item.From, text: d.Contents,
					Why: "the operator contract does not know: it would go with vipgen's unit"})
			}
			continue
		case known:
			continue
		case !assets.Concerns(item.Name, item.Text):
			others++
			continue
		default:
			u.Why = otherClusters(item.Name, release)
		}
		out = append(out, u)
	}
	return out, others
}

// otherClusters describes the rows of a name for other clusters.
func otherClusters(name, release string) string {
	var spans []string
	for _, e := range assets.Contract {
		if e.Name != name || e.Treatment == assets.Supplied {
			continue
		}
		spans = append(spans, strings.TrimSpace(e.Span()+" "+e.Where)+" ("+e.Roles+")")
	}
	if spans == nil {
		return "the operator contract does not know"
	}
	return "the operator contract has for " + strings.Join(spans, "; ") + ", not for these nodes of OpenShift " + release
}

// compareContract compares the files of the operator and of vipgen with the contract.
func (p *Plan) compareContract() error {
	bundles, err := p.cluster.Bundles()
	if err != nil {
		return err
	}
	rendered := map[string]map[string]bool{}
	for _, b := range bundles {
		rendered[b.Role] = map[string]bool{}
		for _, f := range b.Files {
			rendered[b.Role][f.Path] = true
		}
		for _, u := range b.Units {
			rendered[b.Role][u.Name] = true
		}
	}
	found := map[string]Unknown{}
	items := map[string]*Item{}
	said := conditions(p.observed)
	for _, pool := range p.export.Pools() {
		unknown, others := unknowns(p.export, said, pool, p.Release)
		for _, u := range unknown {
			if _, there := found[u.Name]; !there {
				found[u.Name] = u
			}
		}
		p.Others = max(p.Others, others)
		if slices.Contains(roles, pool) {
			p.treat(items, pool, contract(said, pool, p.Release), rendered[pool])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if slices.Contains(p.options.Accept, name) {
			p.Accepted = append(p.Accepted, found[name])
		} else {
			p.Unknown = append(p.Unknown, found[name])
		}
	}
	order := []assets.Treatment{assets.Replaced, assets.Supplied, assets.Kept}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		p.Items = append(p.Items, *items[key])
	}
	slices.SortStableFunc(p.Items, func(a, b Item) int {
		return slices.Index(order, a.Treatment) - slices.Index(order, b.Treatment)
	})
	return nil
}

// treat sets the treatment of the files and units of a pool.
func (p *Plan) treat(items map[string]*Item, pool string, rows map[string]assets.Entry, rendered map[string]bool) {
	has := map[string]diff.Item{}
	for _, item := range p.export.OperatorItems(pool) {
		has[item.Name] = item
	}
	for name, row := range rows {
		_, there := has[name]
		i := Item{Kind: kind(name), Name: name, Treatment: row.Treatment, Why: row.Why}
		switch {
		case !there && !rendered[name]:
			continue // supplied where vipgen needs it, or kept where the cluster has it
		case row.Treatment == assets.Replaced && !rendered[name]:
			i.Treatment, i.Note = assets.Kept, "vipgen renders none for this cluster"
		case row.Treatment == assets.Replaced && !there:
			i.Treatment, i.Note = assets.Supplied, "not in the export, which the contract says the operator has"
		}
		key := string(i.Treatment) + " " + name
		if items[key] == nil {
			items[key] = &i
		}
		items[key].Pools = append(items[key].Pools, pool)
	}
}

func kind(name string) string {
	if strings.HasPrefix(name, "/") {
		return "file"
	}
	return "unit"
}
