package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

const namespace = "openshift-kni-infra"

// object is one of the API.
type object = map[string]any

// openshift are the kinds of OpenShift that are read, with their plurals.
var openshift = map[string]string{
	"ClusterVersion": "clusterversions", "ControllerConfig": "controllerconfigs", "DNS": "dnses", "Infrastructure": "infrastructures", "Ingress": "ingresses",
	"MachineConfig": "machineconfigs", "MachineConfigPool": "machineconfigpools", "MachineConfiguration": "machineconfigurations", "Network": "networks",
}

// groupOf returns the API group of a kind of OpenShift.
func groupOf(kind string) string {
	switch kind {
	case "MachineConfiguration":
		return "operator.openshift.io"
	case "ControllerConfig", "MachineConfig", "MachineConfigPool":
		return "machineconfiguration.openshift.io"
	}
	return "config.openshift.io"
}

// TestLive: the real kubectl and a real API server answer like the stand-in of cmd/cli, and the
// roles of the page suffice.
func TestLive(t *testing.T) {
	testkit.Live(t)
	free := daemon.FreePort(t)
	plane, err := kubeapi.NewReal(kubeapi.RealConfig{Dir: t.TempDir(), Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"), Addr: free.Addr(), Port: free.Port(), Domain: "demo.example.com"})
	testkit.Must(t, err)
	t.Cleanup(func() { plane.Close() })
	server, err := plane.Server(nil, free.Addr())
	testkit.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*testkit.Patience)
	defer cancel()
	testkit.Must(t, errors.Join(server.Launch(), server.AwaitReady(ctx)))
	create := func(collection string, o object) {
		t.Helper()
		data, err := json.Marshal(o)
		testkit.Must(t, errors.Join(err, plane.Create(ctx, collection, data)))
	}

	pair, err := plane.CA().Client("jane")
	testkit.Must(t, err)
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "demo",
		"clusters": []object{{"name": "c", "cluster": object{"server": "https://" + free.String(), "tls-server-name": "api-int.demo.example.com", "certificate-authority-data": plane.CA().CertPEM}}},
		"users":    []object{{"name": "u", "user": object{"client-certificate-data": pair.Cert, "client-key-data": pair.Key}}},
		"contexts": []object{{"name": "demo", "context": object{"cluster": "c", "user": "u"}}},
	})
	testkit.Must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	testkit.WriteFile(t, kubeconfig, config)
	t.Setenv("HOME", t.TempDir()) // kubectl's cache
	run := func(args ...string) (code int, out, stderr string) {
		var o, e bytes.Buffer
		args = append(args, "--client", testkit.Tool(t, "kubectl"), "--kubeconfig", kubeconfig, "--context", "demo")
		code = cli.RunLive(args, strings.NewReader(""), &o, &e)
		return code, o.String(), e.String()
	}
	expect := func(args string, code int, want ...string) {
		t.Helper()
		got, out, stderr := run(strings.Fields(args)...)
		for _, want := range want {
			if got != code || !strings.Contains(out+stderr, want) {
				t.Errorf("%s: exit code %d, want %d, no %q in\n%s%s", args, got, code, want, out, stderr)
			}
		}
	}

	expect("status", command.Failed, `Error from server (Forbidden): nodes is forbidden: User "jane" cannot list resource "nodes"`, "reading the Nodes: a right is missing")
	create("/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}})
	roles := rights(t)
	allow := func(o object) {
		rbac, kind := "/apis/rbac.authorization.k8s.io/v1/", o["kind"].(string)
		if kind == "Role" {
			rbac += "namespaces/" + namespace + "/"
		}
		create(rbac+strings.ToLower(kind)+"s", o)
		create(rbac+strings.ToLower(kind)+"bindings", object{
			"apiVersion": o["apiVersion"], "kind": kind + "Binding", "metadata": o["metadata"],
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": o["metadata"].(object)["name"]},
			"subjects": []object{{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}},
		})
	}
	allow(roles[0])
	allow(roles[1])
	for _, name := range []string{"master-0", "master-1"} {
		create("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": object{"node-role.kubernetes.io/master": ""}}})
	}
	expect("adopt", command.Input, `the server doesn't have a resource type "clusterversion"`, "note: this cluster has no machineconfiguration.operator.openshift.io; read the others\n", "no MachineConfig of the operator for the pool master")

	for kind, plural := range openshift {
		create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": plural + "." + groupOf(kind), "annotations": object{"api-approved.kubernetes.io": "unapproved, a test"}},
			"spec": object{"group": groupOf(kind), "scope": "Cluster", "names": object{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)}, "versions": []object{
				{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
			}},
		})
	}
	live := testkit.ReadFile(t, "../../examples/export/before.yaml")
	live = append(live, "---\napiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\nstatus: {platformStatus: {type: BareMetal}}\n"...)
	list, err := ignition.Objects(live)
	testkit.Must(t, err)
	for _, raw := range list {
		var o object
		testkit.Must(t, json.Unmarshal(raw, &o))
		kind := o["kind"].(string)
		if openshift[kind] == "" {
			continue
		}
		o["apiVersion"] = groupOf(kind) + "/v1"
		testkit.AwaitWithin(t, testkit.Patience, kind+" can be created", func() bool {
			data, _ := json.Marshal(o)
			err = plane.Create(ctx, "/apis/"+groupOf(kind)+"/v1/"+openshift[kind], data)
			return err == nil
		}, func() string { return fmt.Sprint(err) })
	}
	expect("status", command.Failed, `Error from server (Forbidden): pods "keepalived-master-0" is forbidden: User "jane" cannot get resource "pods"`, "asking the nodes' agents: a right is missing")
	allow(roles[2])
	expect("status", command.Finding, `warning: node master-1: Error from server (NotFound): pods "keepalived-master-1" not found`, "missing-state: master-0: ")
	for _, name := range []string{"master-0", "master-1"} {
		live = fmt.Appendf(live, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {node-role.kubernetes.io/master: ''}}\n", name)
	}
	var want, problems bytes.Buffer
	if code := cli.Run([]string{"adopt", "-"}, bytes.NewReader(live), &want, &problems); code != command.OK {
		t.Fatal(&problems)
	}
	if code, out, stderr := run("adopt"); code != command.OK || out != want.String() {
		t.Errorf("exit code %d\n%s\n%s", code, cmp.Diff(want.String(), out), stderr)
	}
}

// rights are the roles of the page.
func rights(t *testing.T) (out []object) {
	t.Helper()
	block := regexp.MustCompile("(?s)### Rights.*?```yaml\n(.*?)```").FindSubmatch(testkit.ReadFile(t, "../../docs/commands.md"))
	if block == nil {
		t.Fatal("commands.md has no roles")
	}
	for text := range strings.SplitSeq(string(block[1]), "---\n") {
		var o object
		testkit.Must(t, yaml.Unmarshal([]byte(text), &o))
		out = append(out, o)
	}
	if len(out) != 3 {
		t.Fatalf("%d roles", len(out))
	}
	return out
}
