package installconfig

import (
	"fmt"
	"strconv"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// The names of OpenShift's own pools.
const (
	master  = "master"
	worker  = "worker"
	arbiter = "arbiter"
)

// defaultReplicas is the installer's default for the control plane and the pool worker.
const defaultReplicas = 3

func (r *reader) pools(c *InstallConfig, in *file) {
	c.ControlPlane = r.fixedPool("controlPlane", master, in.ControlPlane, defaultReplicas)
	if in.Arbiter != nil {
		p := r.fixedPool("arbiter", arbiter, *in.Arbiter, 0)
		c.Arbiter = &p
	}
	c.Compute = r.compute(in.Compute)
	if f := in.ControlPlane.Fencing; f != nil {
		c.Fencing, c.FencingCredentials = true, len(f.Credentials)
	}
}

// fixedPool reads a pool whose name the installer overwrites (its pkg/types/defaults,
// SetInstallConfigDefaults).
func (r *reader) fixedPool(field, name string, in filePool, replicas int) Pool {
	if in.Name != "" && in.Name != name {
		r.problems = append(r.problems, problem.Problem{Severity: problem.Warning, Code: problem.BadName, Field: field + ".name",
			Found: problem.Quote(in.Name), Expected: strconv.Quote(name), Hint: "OpenShift's installer calls it that whatever is said here"})
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
		case !v1alpha1.ValidLabel(p.Name):
			r.add(problem.BadName, name, problem.Quote(p.Name), labelRule, "")
		case p.Name == master || p.Name == arbiter:
			r.add(problem.BadName, name, problem.Quote(p.Name), "the name of a compute pool",
				"master and arbiter have fields of their own, controlPlane and arbiter")
		case p.Name != worker:
			// The installer's validateCompute; edge is for AWS alone.
			r.add(problem.BadName, name, problem.Quote(p.Name), strconv.Quote(worker), "OpenShift's installer takes no other pool: put it under spec.pools of vipgen.yaml")
		case first[p.Name] != "":
			r.duplicate(name, p.Name, first[p.Name])
		default:
			first[p.Name] = name
			if p.Fencing != nil {
				r.add(problem.Topology, field+".fencing", "fencing of compute nodes", "none: it is for the control plane", "")
			}
			pools = append(pools, Pool{Name: p.Name, Field: field, Replicas: r.replicas(field, p.Replicas, defaultReplicas)})
		}
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
