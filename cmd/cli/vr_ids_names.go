package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// routerIDs are the derived IDs of a cluster, for printing.
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
	collisions := collide(ids)
	if o == "json" {
		err := a.printJSON(struct {
			Clusters   []routerIDs `json:"clusters"`
			Collisions []collision `json:"collisions"`
		}{ids, collisions})
		return errors.Join(err, foundAny(collisions))
	}
	w := command.Table(a.out)
	fmt.Fprintln(w, "CLUSTER\tAPI\tINGRESS")
	for _, r := range ids {
		fmt.Fprintf(w, "%s\t%d\t%d\n", r.Cluster, r.API, r.Ingress)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range collisions {
		fmt.Fprintf(a.out, "%s collide at %d; on one network, set spec.vrrp.virtualRouterIDs in vipgen.yaml of one of them\n", strings.Join(c.Users, " and "), c.ID)
	}
	return foundAny(collisions)
}

// collision is an ID with more than one user.
type collision struct {
	ID    int      `json:"id"`
	Users []string `json:"users"`
}

func foundAny(list []collision) error {
	if len(list) > 0 {
		return command.ErrFinding
	}
	return nil
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
