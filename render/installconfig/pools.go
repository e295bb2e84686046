package installconfig

import (
	"fmt"
	"strconv"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// The names of the pools that every cluster has, or can have.
const (
	master  = "master"
	worker  = "worker"
	arbiter = "arbiter"
	edge    = "edge"
)

// defaultReplicas is the installer's, for the control plane and the pool
// worker; every other pool has no machines until the file says so.
const defaultReplicas = 3

func (r *reader) pools(c *InstallConfig, in *file) {
	c.ControlPlane = r.fixedPool("controlPlane", master, in.ControlPlane, defaultReplicas)
	if in.Arbiter != nil {
		p := r.fixedPool("arbiter", arbiter, *in.Arbiter, 0)
		c.Arbiter = &p
	}
	c.Compute = r.compute(in.Compute)
	// Only whether it is there: what is in it are credentials.
	c.Fencing = r.doc.Has("controlPlane.fencing") || r.doc.Has("fencing")
}

// fixedPool is a pool whose name cannot be chosen.
func (r *reader) fixedPool(field, name string, in filePool, replicas int) Pool {
	if in.Name != "" && in.Name != name {
		r.add(problem.BadName, field+".name", problem.Quote(in.Name), strconv.Quote(name), "")
	}
	return Pool{Name: name, Field: field, Replicas: r.replicas(field, in.Replicas, replicas)}
}

func (r *reader) compute(in []filePool) []Pool {
	if len(in) == 0 {
		return []Pool{{Name: worker, Field: "compute", Replicas: defaultReplicas}}
	}
	var pools []Pool
	first := map[string]string{}
	for i, p := range in {
		field := fmt.Sprintf("compute[%d]", i)
		name := field + ".name"
		switch {
		case p.Name == "":
			r.missing(name, `the name of the pool, such as "worker"`, field)
			continue
		case !v1alpha1.ValidLabel(p.Name):
			r.add(problem.BadName, name, problem.Quote(p.Name), labelRule, "")
			continue
		case p.Name == master || p.Name == arbiter:
			r.add(problem.BadName, name, problem.Quote(p.Name), "the name of a compute pool",
				"master and arbiter have fields of their own, controlPlane and arbiter")
			continue
		case p.Name == "bootstrap" || p.Name == "control-plane":
			r.add(problem.BadName, name, problem.Quote(p.Name), "the name of a compute pool", "")
			continue
		case first[p.Name] != "":
			r.second(name, p.Name, first[p.Name])
			continue
		}
		first[p.Name] = name
		if p.Name != worker && p.Name != edge {
			r.problems = append(r.problems, problem.Problem{Severity: problem.Warning, Code: problem.BadName, Field: name, Found: problem.Quote(p.Name),
				Expected: `"worker" or "edge"`, Hint: "OpenShift's installer takes no other pool: put it under spec.pools of vipgen.yaml"})
		}
		otherwise := 0
		if p.Name == worker {
			otherwise = defaultReplicas
		}
		pools = append(pools, Pool{Name: p.Name, Field: field, Replicas: r.replicas(field, p.Replicas, otherwise)})
	}
	return pools
}

func (r *reader) replicas(field string, n *int, otherwise int) int {
	switch {
	case n == nil:
		return otherwise
	case *n < 0:
		r.add(problem.BadValue, field+".replicas", strconv.Quote(strconv.Itoa(*n)), "a number from 0", "")
		return otherwise
	}
	return *n
}
