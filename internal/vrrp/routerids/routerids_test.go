package routerids

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/testkit"
)

// cluster parses "name network id id...": a letter behind an ID marks it as fixed (f),
// chosen (c), for IPv6 alone (v) or without a field (n).
func cluster(text string) Cluster {
	words := strings.Fields(text)
	c := Cluster{Name: words[0]}
	for n := range strings.SplitSeq(words[1], ",") {
		if p, err := netip.ParsePrefix(n); err == nil {
			c.Networks = append(c.Networks, p)
		} else {
			c.Network = n
		}
	}
	for i, w := range words[2:] {
		u := Use{Group: fmt.Sprintf("group%d", i), Field: "spec.field", IPv4: true}
		var flags string
		_, _ = fmt.Sscanf(w, "%d%s", &u.ID, &flags)
		if strings.Contains(flags, "f") {
			u.Fixed = "fixed"
		}
		u.Chosen = strings.Contains(flags, "c")
		if strings.Contains(flags, "v") {
			u.IPv4, u.IPv6 = false, true
		}
		if strings.Contains(flags, "n") {
			u.Field = ""
		}
		c.Uses = append(c.Uses, u)
	}
	return c
}

func TestFind(t *testing.T) {
	const net, inner, other = "192.0.2.0/24", "192.0.2.128/25", "198.51.100.0/24"
	around, names := []string{"a 10.0.0.0/8 1"}, "a"
	for i := range 25 {
		around, names = append(around, fmt.Sprintf("c%d 10.%d.0.0/16 1", i, i)), fmt.Sprintf("%s,c%d", names, i)
	}
	all := make([]int, 255)
	for i := range all {
		all[i] = i + 1
	}
	for _, tt := range []struct {
		name     string
		clusters []string
		foreign  []Foreign
		reserved []int
		// expected collisions, "ID:cluster,cluster"; changes, "cluster FROM>TO".
		collisions, overrides, unsolved string
	}{
		{name: "none", clusters: []string{"a " + net + " 1 2", "b " + net + " 3 4"}},
		{name: "on two networks", clusters: []string{"a " + net + " 1", "b " + other + " 1"}},
		{name: "two", clusters: []string{"a " + net + " 1 2", "b " + net + " 2 3"}, collisions: "2:a,b", overrides: "b 2>4"},
		{name: "the one that was chosen stays", clusters: []string{"a " + net + " 1", "b " + net + " 1c"}, collisions: "1:a,b", overrides: "a 1>2"},
		{name: "the one that cannot change stays", clusters: []string{"a " + net + " 1c", "b " + net + " 1f"}, collisions: "1:a,b", overrides: "a 1>2"},
		{name: "neither can change", clusters: []string{"a " + net + " 1f", "b " + net + " 1f", "c " + net + " 1"}, collisions: "1:a,b,c", overrides: "c 1>2", unsolved: "b"},
		{name: "the one in the middle", clusters: []string{"a " + net + " 1", "b " + net + "," + other + " 1", "c " + other + " 1"}, collisions: "1:a,b,c", overrides: "b 1>2"},
		{name: "overlap", clusters: []string{"a " + net + " 1", "b " + inner + " 1"}, collisions: "1:a,b", overrides: "b 1>2"},
		{name: "the network around all others", clusters: []string{"a 192.0.0.0/16 1", "b " + net + " 1", "c 192.0.3.0/24 1"}, collisions: "1:a,b,c", overrides: "a 1>2"},
		{name: "the network around many", clusters: around, collisions: "1:" + names, overrides: "a 1>2"},
		{name: "names part networks", clusters: []string{"a " + net + ",x 1", "b " + net + ",y 1"}},
		{name: "names join networks", clusters: []string{"a " + net + ",x 1", "b " + other + ",x 1"}, collisions: "1:a,b", overrides: "b 1>2"},
		{name: "families", clusters: []string{"a " + net + " 1", "b " + net + " 1v"}},
		{name: "families, and the next ID", clusters: []string{"a " + net + " 1c", "b " + net + " 1", "c " + net + " 2v 2"}, collisions: "1:a,b", overrides: "b 1>3"},
		{name: "reserved", clusters: []string{"a " + net + " 1 2"}, reserved: []int{2, 3}, collisions: "2:a", overrides: "a 2>4"},
		{name: "reserved and fixed", clusters: []string{"a " + net + " 2f"}, reserved: []int{2}, collisions: "2:a", unsolved: "a"},
		{name: "none is left", clusters: []string{"a " + net + " 2"}, reserved: all, collisions: "2:a", unsolved: "a"},
		{name: "no field", clusters: []string{"a " + net + " 2n"}, reserved: []int{2}, collisions: "2:a", unsolved: "a"},
		{name: "at the end", clusters: []string{"a " + net + " 255", "b " + net + " 255", "c " + net + " 1"}, collisions: "255:a,b", overrides: "b 255>2"},
		{name: "seen", clusters: []string{"a " + net + " 5", "b " + other + " 5"}, foreign: []Foreign{{ID: 5, Source: netip.MustParseAddr("192.0.2.9")}}, collisions: "5:a", overrides: "a 5>6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []Cluster
			for _, c := range tt.clusters {
				c := cluster(c)
				c.Reserved = tt.reserved
				list = append(list, c)
			}
			got := Find(list, tt.foreign)
			var collisions, overrides, unsolved []string
			for _, c := range got.Collisions {
				var names []string
				for _, user := range c.Users {
					name, _, _ := strings.Cut(user, "'s ")
					names = append(names, name)
				}
				if c.Why == "" {
					t.Error("a collision without a reason")
				}
				collisions = append(collisions, fmt.Sprintf("%d:%s", c.ID, strings.Join(names, ",")))
			}
			for _, o := range got.Overrides {
				overrides = append(overrides, fmt.Sprintf("%s %d>%d", o.Cluster, o.From, o.To))
				i := slices.IndexFunc(list, func(c Cluster) bool { return c.Name == o.Cluster })
				u := slices.IndexFunc(list[i].Uses, func(u Use) bool { return u.ID == o.From })
				list[i].Uses[u].ID = o.To
			}
			for _, u := range got.Unsolved {
				name, _, _ := strings.Cut(u.User, "'s ")
				unsolved = append(unsolved, name)
			}
			for _, d := range []string{
				cmp.Diff(tt.collisions, strings.Join(collisions, " ")), cmp.Diff(tt.overrides, strings.Join(overrides, " ")), cmp.Diff(tt.unsolved, strings.Join(unsolved, " ")),
			} {
				testkit.Equal(t, "", d)
			}
			if again := Find(list, tt.foreign); tt.unsolved == "" && len(again.Collisions) > 0 {
				t.Errorf("with the overrides there are still %v", again.Collisions)
			}
		})
	}
}

// The node's own advertisements do not count as another sender's.
func TestOwnAdvertsAreSeen(t *testing.T) {
	c := cluster("a 192.0.2.0/24 5")
	vip := netip.MustParseAddr("192.0.2.5")
	c.Uses[0].VIPs = []netip.Addr{vip}
	seen := []Foreign{{ID: 5, Source: netip.MustParseAddr("192.0.2.9"), VIPs: []netip.Addr{vip}}}
	if r := Find([]Cluster{c}, seen); len(r.Collisions) > 0 {
		t.Errorf("%+v", r)
	}
}
