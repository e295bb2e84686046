package examples_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// fleetSize is the number of clusters the repository has.
const fleetSize = 200

const fleetDefaults = `apiVersion: vipgen.io/v1alpha1
kind: VIPConfig
spec:
  openshiftVersion: "4.18"
  vrrp:
    profile: custom
    advertInterval: 50ms
  images:
    coredns: registry.example.com/coredns@sha256:%064x
  manifests:
    nodeDisruptionPolicy: true
`

// newFleet makes a Git repository with 200 clusters on four platforms, each in its own network,
// with three pools. Every fourth has no node disruption policy.
func newFleet(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	r.must("git", "init", "-q")
	r.write("fleet.yaml", fmt.Appendf(nil, fleetDefaults, 1))
	for n := range fleetSize {
		platform := []string{"baremetal", "vsphere", "openstack", "nutanix"}[n%4]
		dir := fmt.Sprintf("clusters/c%03d/", n)
		r.write(dir+"install-config.yaml", fmt.Appendf(nil, `apiVersion: v1
baseDomain: example.com
metadata:
  name: c%03d
networking:
  machineNetwork:
  - cidr: 10.0.%d.0/24
compute:
- name: worker
  replicas: 2
platform:
  %s:
    apiVIPs: [10.0.%[2]d.5]
    ingressVIPs: [10.0.%[2]d.6]
    loadBalancer:
      type: UserManaged
`, n, n, platform))
		own := "  pools:\n  - name: infra\n"
		if n%4 == 3 {
			own += "  manifests:\n    nodeDisruptionPolicy: false\n"
		}
		r.write(dir+"vipgen.yaml", []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec:\n"+own))
	}
	r.render()
	r.commit("All clusters")
	return r
}

func (r repository) vipgen(args ...string) (code int, out string) {
	r.Helper()
	return r.run("sh", append([]string{"-c", `exec "$VIPGEN" "$@"`, "vipgen"}, args...)...)
}

func (r repository) render() {
	r.Helper()
	if code, out := r.vipgen("render", "clusters", "--beside", "rendered", "--format", "machineconfig"); code != 0 {
		r.Fatalf("render: exit code %d\n%s", code, out)
	}
}

func (r repository) commit(subject string) {
	r.Helper()
	r.must("git", "add", ".")
	r.must("git", "commit", "-q", "-m", subject)
}

// review is the part of a change that a reviewer reads.
type review struct {
	Compared int
	Clusters []struct {
		Cluster string
		Pools   []struct {
			Name, Effect string
			Reasons      []struct{ Change, Why string }
			Changes      []struct {
				Kind, Name, What string
				Fields           []struct{ Path, What, Old, New string }
			}
		}
	}
	Effects map[string]int
}

// review compares the committed files with the working tree.
func (r repository) review() (v review) {
	r.Helper()
	code, out := r.vipgen("diff", "HEAD:clusters", "clusters", "-o", "json")
	if code != 1 {
		r.Fatalf("diff: exit code %d\n%s", code, out)
	}
	testkit.Must(r, json.Unmarshal([]byte(out), &v))
	if v.Compared != fleetSize {
		r.Errorf("%d clusters compared", v.Compared)
	}
	return v
}

// text is the output at the reviewer's terminal.
func (r repository) text(wants ...string) {
	r.Helper()
	_, out := r.vipgen("diff", "HEAD:clusters", "clusters")
	testkit.Contains(r, out, wants...)
}

// expect checks the number of pools for each effect.
func (v review) expect(t *testing.T, clusters int, effects map[string]int) {
	t.Helper()
	if len(v.Clusters) != clusters || fmt.Sprint(v.Effects) != fmt.Sprint(effects) {
		t.Errorf("%d clusters, %v; want %d, %v", len(v.Clusters), v.Effects, clusters, effects)
	}
}

// TestReview walks through a fleet as a reviewer does. The expected effects are derived by hand
// from the table of docs/upgrade.md: every cluster has the pools master, worker and infra; 150
// of 200 have a node disruption policy.
func TestReview(t *testing.T) {
	testkit.Long(t)
	const clusterYAML = "/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml"
	r := newFleet(t)
	if code, out := r.vipgen("diff", "HEAD:clusters", "clusters"); code != 0 || out != "0 of 200 clusters differ\n" {
		t.Fatalf("nothing has changed: exit code %d\n%s", code, out)
	}

	// One VIP of one cluster: one field of one file, which the agents apply.
	r.replace("clusters/c004/install-config.yaml", "[10.0.4.6]", "[10.0.4.7]")
	r.render()
	v := r.review()
	v.expect(t, 1, map[string]int{"reload by the agent": 3})
	for _, p := range v.Clusters[0].Pools {
		if len(p.Changes) != 1 || p.Changes[0].Name != clusterYAML || len(p.Changes[0].Fields) != 1 ||
			p.Changes[0].Fields[0].Path != "spec.groups[ingress].vips[0]" || p.Changes[0].Fields[0].New != "10.0.4.7" {
			t.Errorf("pool %s: %+v", p.Name, p.Changes)
		}
	}
	r.text("cluster c004 (c004/rendered)\n  pool master: reload by the agent\n", "spec.groups[ingress].vips[0]: 10.0.4.6 -> 10.0.4.7\n", "1 of 200 clusters differ; pools by what happens to them: reload by the agent: 3\n")
	r.commit("Move a VIP")

	// The same in a cluster without the policy.
	r.replace("clusters/c003/install-config.yaml", "[10.0.3.6]", "[10.0.3.7]")
	r.render()
	v = r.review()
	v.expect(t, 1, map[string]int{"reboot": 3})
	if p := v.Clusters[0].Pools[0]; len(p.Reasons) != 1 || p.Reasons[0].Change != "file "+clusterYAML || p.Reasons[0].Why != "no node disruption policy names it" {
		t.Errorf("%+v", p.Reasons)
	}
	r.commit("Move another VIP")

	// One timing in fleet.yaml: cluster.yaml of all.
	r.replace("fleet.yaml", "50ms", "80ms")
	r.render()
	v = r.review()
	v.expect(t, fleetSize, map[string]int{"reload by the agent": 450, "reboot": 150})
	r.text("150 clusters: c000", "50 clusters: c003", "spec.vrrp.target.advertIntervalMS: 50 -> 80\n")
	r.commit("Slow down")

	// One image everywhere: a static pod of every pool.
	r.replace("fleet.yaml", fmt.Sprintf("%064x", 1), fmt.Sprintf("%064x", 2))
	r.render()
	v = r.review()
	v.expect(t, fleetSize, map[string]int{"reboot": 3 * fleetSize})
	for _, p := range v.Clusters[7].Pools {
		if len(p.Changes) != 1 || p.Changes[0].Name != "/etc/kubernetes/manifests/coredns.yaml" || !strings.HasSuffix(p.Changes[0].Fields[0].Path, "[coredns].image") {
			t.Errorf("pool %s: %+v", p.Name, p.Changes)
		}
	}
	r.commit("Update CoreDNS")

	// The name of a pool: nodes of the old pool would get the worker's pods, those of the new
	// one its own instead.
	r.replace("clusters/c008/vipgen.yaml", "name: infra", "name: edge")
	r.render()
	v = r.review()
	v.expect(t, 1, map[string]int{"reboot": 2})
	for i, name := range []string{"edge", "infra"} {
		p := v.Clusters[0].Pools[i]
		if p.Name != name || len(p.Changes) == 0 {
			t.Fatalf("%+v", p)
		}
		for _, c := range p.Changes {
			if !strings.HasPrefix(c.Name, "/etc/kubernetes/manifests/") || c.What != "changed" {
				t.Errorf("pool %s: %+v", name, c)
			}
		}
	}
	r.commit("Rename a pool")

	// Drift by hand is found and reported with its file.
	r.replace("clusters/c100/rendered/machineconfigs/99-master-vipgen.yaml", "enabled: true", "enabled: false")
	r.must("rm", "clusters/c101/rendered/manifests/role.yaml")
	code, out := r.vipgen("render", "clusters", "--beside", "rendered", "--format", "machineconfig", "--check")
	if code != 1 || !strings.Contains(out, "clusters/c100/rendered/machineconfigs/99-master-vipgen.yaml: differs\n") || !strings.Contains(out, "clusters/c101/rendered/manifests/role.yaml: missing\n") {
		t.Errorf("drift: exit code %d\n%s", code, out)
	}
}

// Two clusters with colliding IDs in one network, before and after --fix.
func TestCollidingClusters(t *testing.T) {
	r := newFleet(t)
	for n, name := range []string{"cnf10", "cnf11"} {
		r.write("clusters/"+name+"/install-config.yaml", fmt.Appendf(nil, `apiVersion: v1
baseDomain: example.com
metadata: {name: %s}
networking: {machineNetwork: [{cidr: 192.0.2.0/24}]}
platform: {baremetal: {apiVIPs: [192.0.2.%d], ingressVIPs: [192.0.2.%d], loadBalancer: {type: UserManaged}}}
`, name, 10+n, 20+n))
	}
	r.render()
	r.commit("Two more")
	code, out := r.vipgen("vr-ids", "clusters")
	if code != 1 || !strings.Contains(out, "147  cnf10's api, cnf11's ingress  192.0.2.0/24\n") || !strings.HasSuffix(out, "1 collision in 202 clusters\n") {
		t.Errorf("before: exit code %d\n%s", code, out)
	}
	if code, out := r.vipgen("vr-ids", "clusters", "--fix"); code != 0 {
		t.Errorf("--fix: exit code %d\n%s", code, out)
	}
	if code, out := r.vipgen("vr-ids", "clusters"); code != 0 || out != "no collision in 202 clusters\n" {
		t.Errorf("after: exit code %d\n%s", code, out)
	}
	r.expect(0, "?? clusters/cnf11/vipgen.yaml", "git", "status", "--porcelain")
	r.render()
	_, out = r.vipgen("diff", "HEAD:clusters", "clusters")
	testkit.Contains(t, out, "spec.groups[ingress].virtualRouterID: 147 -> 148\n", "1 of 202 clusters differ")
}
