package cli

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// broken returns the shipped template with one piece of text replaced.
func broken(t *testing.T, old, by string) string {
	t.Helper()
	text := strings.ReplaceAll(keepalived.Template, old, by)
	if text == keepalived.Template {
		t.Fatalf("the template has no %q", old)
	}
	return text
}

func TestVerify(t *testing.T) {
	good(t)
	whole := must(t, "verify")
	testkit.Contains(t, whole,
		"api 192.0.2.2, during the installation: bootstrap, master-0, master-1, master-2\n",
		"api 192.0.2.2, in the running cluster: master-0, master-1, master-2\n",
		"ingress 192.0.2.3, in the running cluster: worker-0, worker-1, worker-2\n",
		"  every API server, through HAProxy, with a machine config server  68        any node at that level  ",
		"proved: bootstrap-keeps, one-holder, no-oscillation, serves, no-needless-move\n",
		"No counterexample.",
	)
	testkit.Contains(t, must(t, "verify", "--nodes", "2"), "in the running cluster: master-0, master-1\n", "note: 2 of 3 nodes\n")
	exits(t, command.Finding, "verify", "--template", "-").has( // an empty template
		"note: master-0 has no VRRP instance for this VIP, and takes no part\n",
		"It is held by no node.\n  It should be held by some node: no node has a VRRP instance for it.\n")
}

func TestVerifyJSON(t *testing.T) {
	good(t)
	lay(t, map[string]string{"own.tmpl": broken(t, "priority {{ .Priority }}", "priority 50")})
	var got struct {
		Holds bool
		verify.Report
	}
	testkit.Must(t, json.Unmarshal([]byte(exits(t, command.Finding, "verify", "-o", "json", "--template", "own.tmpl").out), &got))
	if got.Holds || got.Cluster != "demo" || len(got.Proofs) != 3 || got.Proofs[0].Counterexample == nil || got.Proofs[0].Counterexample.Check != verify.BootstrapKeeps {
		t.Errorf("%+v", got)
	}
}

//go:embed testdata/counterexample.txt
var counterexample string

// A counterexample is printed step by step, and is a finding.
func TestCounterexample(t *testing.T) {
	good(t)
	lay(t, map[string]string{"own.tmpl": broken(t, "state BACKUP", "state MASTER")})
	out := exits(t, command.Finding, "verify", "--template", "own.tmpl", "--nodes", "2").cleanly().out
	_, out, _ = strings.Cut(out, "in the running cluster: master-0, master-1\n")
	out, _, _ = strings.Cut(out, "\n\n\n")
	out, _, _ = strings.Cut(out, "ingress 192")
	testkit.Equal(t, counterexample, out)
}

// A template that cannot be a keepalived.conf is an error with its position.
func TestVerifyBadTemplate(t *testing.T) {
	good(t)
	for text, want := range map[string]string{
		"vrrp_instance {{":     "own.tmpl: error: ",
		"vrrp_script x {\n}\n": `line 1: block "vrrp_script" is not known`,
	} {
		lay(t, map[string]string{"own.tmpl": text})
		exits(t, command.Input, "verify", "--template", "own.tmpl").reports(want, "own.tmpl").silently()
	}
}

func TestVerifyUsage(t *testing.T) {
	good(t)
	for args, want := range map[string]int{
		"verify --nodes 1": command.Input, "verify --nodes 6": command.Input, "verify --nodes many": command.Input, "verify -o yaml": command.Input,
		"verify a b": command.Input, "explain -o yaml": command.Input, "explain a b": command.Input,
		"verify --template no-such": command.Failed, "verify no-such": command.Failed, "explain no-such": command.Failed,
	} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}

// Nodes without VIPs leave nothing to prove, without an error.
func TestVerifyExternalLoadBalancer(t *testing.T) {
	good(t)
	lay(t, map[string]string{"vipgen.yaml": "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: External}}\n"})
	for _, name := range []string{"verify", "explain"} {
		testkit.Equal(testkit.In(t, name), noGroupsText+"\n", must(t, name))
		testkit.Lacks(testkit.In(t, name), must(t, name, "-o", "json"), "null")
	}
}

// Where routers know VIPs no virtual router ID is printed.
func TestExplainRouted(t *testing.T) {
	for _, all := range []string{"--all=false", "--all"} {
		out := must(t, "explain", "../../golden/cases/bgp-racks/install-config.yaml", all)
		testkit.Contains(t, out, "announced to routers by BGP")
		testkit.Lacks(t, out, "virtual router ID")
	}
}
