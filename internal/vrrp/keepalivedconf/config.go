// Package keepalivedconf reads keepalived.conf as keepalived 2.2 does, as far as it
// decides on the holder of a VIP. It reports what it does not understand.
package keepalivedconf

import (
	"fmt"
	"net/netip"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lists"
)

// Config is the content of a keepalived.conf. In a template, values known only on the
// node are zero.
type Config struct {
	// RouterID names the node in keepalived's log.
	RouterID   string
	Files      []File
	SyncGroups []SyncGroup
	Instances  []Instance
	// Groups are the multicast groups of instances without peers, one per family.
	Groups []netip.Addr
	// Template reports that the text contains template actions.
	Template bool
	// Blocks are all blocks of the text, in order.
	Blocks []Statement
	// Unread lists everything else that may affect the holder of a VIP.
	Unread []Problem
}

// File is a file that keepalived watches (track_file).
type File struct {
	Name string
	Path string
	// Weight is the default weight of trackers.
	Weight int
	// Initial is the value that a missing file is created with.
	Initial int
}

// SyncGroup is a set of instances that change state together.
type SyncGroup struct {
	Name    string
	Members []string
	// Tracks apply to all members; keepalived ignores those of members.
	Tracks []Track
	// Block is the group in the text.
	Block Statement
}

// Track adds a file's value times Weight to a priority. With weight 0 a value other than
// 0 is a fault: the instance holds nothing.
type Track struct {
	File   string
	Weight int
}

// Instance is a VRRP instance.
type Instance struct {
	Name string
	// Master reports that the instance starts as the holder (state MASTER), NoPreempt
	// that it leaves the VIP to a holder of lower priority.
	Master, NoPreempt bool
	Version           int
	Interface         string
	RouterID          int
	Priority          int
	// AdvertMS is the time between adverts in milliseconds.
	AdvertMS int
	// AuthType and Password are the authentication of VRRPv2. Password is the advertised
	// part.
	AuthType, Password string
	// Source is the source address of adverts; not valid if not configured.
	Source netip.Addr
	Peers  []Peer
	// TTL is the TTL of adverts to peers; 0 if not configured.
	TTL int
	// Group is the multicast group of adverts, if not VRRP's own.
	Group  netip.Addr
	VIPs   []VIP
	Tracks []Track
	Block  Statement
}

// Peer is a unicast peer. MinTTL is the least TTL of its adverts; 0 for any.
type Peer struct {
	Address netip.Addr
	MinTTL  int
}

// VIP is an address of an instance, as a host prefix by default.
type VIP struct {
	netip.Prefix
	// Statement holds further parameters: link, label, scope.
	Statement Statement
}

// Named returns the blocks that begin with a word.
func (c *Config) Named(word string) (out []Statement) {
	return lists.Filter(c.Blocks, func(b Statement) bool { return b.Word(0) == word })
}

// Problem is something that keepalived refuses, or that is not read.
type Problem struct {
	Line int
	Code problem.Code
	// Field is the keyword; empty for what is no statement.
	Field string
	// Found is the value in the text, except for passwords.
	Found    string
	Expected string
}

// Error formats the problem for the authors of the text.
func (p *Problem) Error() string {
	switch {
	case p.Expected == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Found)
	case p.Found == "":
		return fmt.Sprintf("line %d: %s: expected %s", p.Line, p.Field, p.Expected)
	}
	return fmt.Sprintf("line %d: %s %q: expected %s", p.Line, p.Field, p.Found, p.Expected)
}
