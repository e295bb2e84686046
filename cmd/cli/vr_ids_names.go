package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

type routerIDs struct {
	Cluster string `json:"cluster"`
	API     int    `json:"api"`
	Ingress int    `json:"ingress"`
}

// namedIDs prints the IDs that are derived from names, all on one network.
func (a *app) namedIDs(names []string, o command.Format) error {
	var ids []routerIDs
	for _, n := range names {
		if !slices.ContainsFunc(ids, func(x routerIDs) bool { return x.Cluster == n }) {
			r := v1alpha1.RouterIDs(n)
			ids = append(ids, routerIDs{n, r.API, r.Ingress})
		}
	}
	r := derivedIDs{ids, collide(ids)}
	return found(show(a, o, r, derivedText), len(r.Collisions) > 0)
}

// derivedIDs holds the virtual router IDs of all names, for printing.
type derivedIDs struct {
	Clusters   []routerIDs `json:"clusters"`
	Collisions []collision `json:"collisions"`
}

func derivedText(out *printer, r derivedIDs) {
	w := command.Table(out)
	fmt.Fprintln(w, "CLUSTER\tAPI\tINGRESS")
	for _, c := range r.Clusters {
		fmt.Fprintf(w, "%s\t%d\t%d\n", c.Cluster, c.API, c.Ingress)
	}
	w.Flush()
	for _, c := range r.Collisions {
		fmt.Fprintf(out, "%s collide at %d; on one network, set spec.vrrp.virtualRouterIDs in vipgen.yaml of one of them\n", strings.Join(c.Users, " and "), c.ID)
	}
}

// collision is an ID with more than one user.
type collision struct {
	ID    int      `json:"id"`
	Users []string `json:"users"`
}

func collide(ids []routerIDs) []collision {
	users := map[int][]string{}
	for _, r := range ids {
		users[r.API] = append(users[r.API], r.Cluster+"'s API")
		users[r.Ingress] = append(users[r.Ingress], r.Cluster+"'s ingress")
	}
	out := []collision{}
	for id := 1; id <= 255; id++ {
		if len(users[id]) > 1 {
			out = append(out, collision{id, users[id]})
		}
	}
	return out
}
