package golden

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// daemons returns the daemons of the case's release; the oldest if it names none.
func (c clusterCase) daemons(t testing.TB, n *v1alpha1.Node) assets.Daemons {
	t.Helper()
	version := ""
	for _, flag := range c.args(t, "") {
		if v, ok := strings.CutPrefix(flag, "--openshift-version="); ok {
			version = v
		}
	}
	d := assets.DaemonsOf(version)
	if n.HAProxy != "" {
		d.HAProxy = n.HAProxy // the node's facts are more precise
	}
	return d
}

// TestHardCase29Generations: configurations rendered for a release are accepted by its daemons
// and all later ones, of all available generations; where the case names no release, by all of
// them. The installed generation is part of TestCases.
func TestHardCase29Generations(t *testing.T) {
	testkit.Long(t)
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.result(t)
			for _, g := range daemon.Generations {
				if g == daemon.Installed {
					continue
				}
				eachNode(t, r, v1alpha1.KeepalivedConf, func(t *testing.T, node string, conf []byte) {
					if g.RunsKeepalived(c.daemons(t, c.facts(t, r, node))) {
						g.CheckKeepalived(t, conf)
					}
				})
				eachNode(t, r, v1alpha1.HAProxyConf, func(t *testing.T, node string, cfg []byte) {
					if g.RunsHAProxy(c.daemons(t, c.facts(t, r, node))) {
						g.CheckHAProxy(t, cfg)
					}
				})
			}
		})
	}
}

// Every generation is in use: a release whose daemons are not tested would go unnoticed.
func TestGenerationsOfReleases(t *testing.T) {
	for release, want := range map[string][]string{
		"":     {"bullseye", "bookworm", "trixie"},
		"4.12": {"bullseye", "bookworm", "trixie"},
		"4.15": {"bookworm", "trixie"},
		"4.22": {"trixie"},
	} {
		var got []string
		for _, g := range daemon.Generations {
			if g.RunsHAProxy(assets.DaemonsOf(release)) {
				got = append(got, g.Name)
			}
		}
		testkit.Equal(testkit.In(t, release), want, got)
	}
}
