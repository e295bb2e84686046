// Package keepalivedconf reads keepalived.conf as keepalived 2.2 does, as far as it says
// who holds a VIP. What it makes nothing of, it names.
package keepalivedconf

import (
	"fmt"
	"net/netip"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/blocks"
)

// Config is what keepalived takes from a keepalived.conf. Of a template of one, what only
// the node knows is the zero value.
type Config struct {
	// RouterID names the node in keepalived's log.
	RouterID   string
	Files      []File
	SyncGroups []SyncGroup
	Instances  []Instance
	// Groups are the multicast groups of instances without peers, one of a family.
	Groups []netip.Addr
	// Template says that the text has actions of a template.
	Template bool
	// Blocks are all of the text, in its order.
	Blocks []blocks.Statement
	// Unread is what may have a say in who holds a VIP and is in none of the above.
	Unread []Problem
}

// File is a file that keepalived watches (track_file).
type File struct {
	Name string
	Path string
	// Weight is that of trackers that give none.
	Weight int
	// Initial is what a missing file is made to say.
	Initial int
}

// SyncGroup is a set of instances that change state together.
type SyncGroup struct {
	Name    string
	Members []string
	// Tracks count for all members; keepalived ignores those of members.
	Tracks []Track
	// Block is the group as it stands in the text, as that of Instance.
	Block blocks.Statement
}

// Track is a file's part in a priority: what the file says, times Weight, is
// added. With weight 0 a file that does not say 0 is a fault: the instance holds
// nothing.
type Track struct {
	File   string
	Weight int
}

// Instance is a VRRP instance.
type Instance struct {
	Name string
	// Master says that it starts as the holder (state MASTER), NoPreempt that it
	// leaves the VIP to a holder of lower priority.
	Master, NoPreempt bool
	Version           int
	Interface         string
	RouterID          int
	Priority          int
	// AdvertMS is the time between adverts in milliseconds.
	AdvertMS int
	// AuthType and Password are those of authentication, which VRRPv2 has. Password is
	// as much of it as goes into adverts.
	AuthType, Password string
	// Source is the address that adverts come from; not valid unless given.
	Source netip.Addr
	Peers  []Peer
	// TTL of adverts to peers; 0 where the configuration does not say.
	TTL int
	// Group is the multicast address of adverts, if it is not VRRP's own.
	Group  netip.Addr
	VIPs   []VIP
	Tracks []Track
	Block  blocks.Statement
}

// Peer is a unicast peer. MinTTL is what adverts must still have; 0 is anything.
type Peer struct {
	Address netip.Addr
	MinTTL  int
}

// VIP is an address of an instance, with a host prefix where the text gives it none.
type VIP struct {
	netip.Prefix
	// Statement has what else there is: a link, a label, a scope.
	Statement blocks.Statement
}

// Named are the blocks of the text that begin with that word.
func (c *Config) Named(word string) (out []blocks.Statement) {
	for _, b := range c.Blocks {
		if b.Word(0) == word {
			out = append(out, b)
		}
	}
	return out
}

// Problem is something that keepalived does not take, or that is not read.
type Problem struct {
	Line int
	Code problem.Code
	// Field is the word that it is about; empty for what is no statement.
	Field string
	// Found is what stands there. It may be anything, but for a password.
	Found    string
	Expected string
}

// Error is for people who wrote the text, or may read it.
func (p *Problem) Error() string {
	switch {
	case p.Expected == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Found)
	case p.Found == "":
		return fmt.Sprintf("line %d: %s: expected %s", p.Line, p.Field, p.Expected)
	}
	return fmt.Sprintf("line %d: %s %q: expected %s", p.Line, p.Field, p.Found, p.Expected)
}
