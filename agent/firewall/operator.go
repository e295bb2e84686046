package firewall

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/lists"
)

// The redirect of OpenShift's own haproxy-monitor (baremetal-runtimecfg, pkg/monitor:
// ensureHAProxyFirewallRules): a table of its own from 4.22 on, before that iptables
// rules in the table nat, recognized by their comment.
const (
	operatorsTable   = "ocp_nat"
	operatorsComment = "OCP_API_LB_REDIRECT"
	iptablesTable    = "nat"
)

// operators holds the operator's redirect left on an adopted node (hard case 58): while
// HAProxy does not serve, it would divert connections that the node's API server could
// take.
type operators struct {
	tables []*nftables.Table
	rules  []*nftables.Rule
}

// String describes the rules; it is empty if there are none.
func (o operators) String() string {
	out := lists.Map(o.tables, func(t *nftables.Table) string { return "table " + familyName(t) + " " + t.Name })
	for _, r := range o.rules {
		out = append(out, "a rule of iptables in "+familyName(r.Table)+" "+r.Table.Name+" "+r.Chain.Name)
	}
	return strings.Join(out, ", ")
}

func familyName(t *nftables.Table) string {
	if t.Family == nftables.TableFamilyIPv6 {
		return "ip6"
	}
	return "ip"
}

// findOperators returns the operator's redirect of both families.
func findOperators(conn *nftables.Conn) (o operators, err error) {
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		tables, err := conn.ListTablesOfFamily(family)
		if err != nil {
			return o, fmt.Errorf("reading the tables: %w", explain(err))
		}
		for _, t := range tables {
			switch t.Name {
			case operatorsTable:
				o.tables = append(o.tables, t)
			case iptablesTable:
				for _, name := range []string{"OUTPUT", "PREROUTING"} {
					rules, err := conn.GetRules(t, &nftables.Chain{Name: name, Table: t})
					if err != nil && !errors.Is(err, unix.ENOENT) {
						return o, fmt.Errorf("reading the chain %s of the table %s: %w", name, t.Name, explain(err))
					}
					o.rules = append(o.rules, slices.DeleteFunc(rules, func(r *nftables.Rule) bool { return !isOperators(r) })...)
				}
			}
		}
	}
	return o, nil
}

// isOperators reports whether a rule has the operator's comment, as an iptables match or
// as nft stores comments.
func isOperators(r *nftables.Rule) bool {
	if comment, ok := userdata.GetString(r.UserData, userdata.TypeComment); ok && comment == operatorsComment {
		return true
	}
	return slices.ContainsFunc(r.Exprs, func(e expr.Any) bool {
		match, ok := e.(*expr.Match)
		if !ok {
			return false
		}
		comment, ok := match.Info.(*xt.Comment)
		return ok && *comment == operatorsComment
	})
}

// removeOperators removes the operator's redirect if remove is true, and returns what was
// found.
func removeOperators(remove bool) (found string, err error) {
	conn, err := open()
	if err != nil {
		return "", err
	}
	defer conn.CloseLasting()
	o, err := findOperators(conn)
	if found = o.String(); err != nil || found == "" || !remove {
		return found, err
	}
	for _, t := range o.tables {
		conn.DelTable(t)
	}
	for _, r := range o.rules {
		if err := conn.DelRule(r); err != nil {
			return found, fmt.Errorf("removing a rule: %w", err)
		}
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) { // just removed
		return found, fmt.Errorf("removing %s: %w", found, explain(err))
	}
	return found, nil
}

// leftover is the operator's redirect at the last check.
type leftover struct {
	found      string
	err        error
	whole      bool      // vipgen's redirect was in place
	generation uint32    // of the rules
	at         time.Time // zero: check again
}

// leftover checks for the operator's redirect, every readEvery if any rule has changed,
// and removes it once vipgen's redirect is whole. A removed one is reported until the
// next check.
func (k *keeperRun) leftover(whole bool) (found string, err error) {
	l := &k.left
	if whole == l.whole && k.now().Sub(l.at) < readEvery {
		return l.found, l.err
	}
	generation, err := k.generations.Current()
	if err == nil && whole == l.whole && generation == l.generation {
		l.at = k.now()
		return l.found, l.err
	}
	*l = leftover{whole: whole, generation: generation, at: k.now()}
	if l.found, l.err = removeOperators(whole); l.err == nil && l.found != "" && whole {
		l.at = time.Time{}
	}
	return l.found, l.err
}
