package keepalived

import (
	"slices"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// LeaveOutAll leaves out all instances.
func (k *Conf) LeaveOutAll(why vrrp.LeftOut, subject ...any) {
	k.Instances, k.SyncGroups, k.TrackFiles = nil, nil, nil
	k.Idle = []string{why.Text(subject...)}
}

// LeaveOut leaves out instances, and those that change state together with them.
func (k *Conf) LeaveOut(names []string, why vrrp.LeftOut) {
	if len(names) == 0 {
		return
	}
	for _, g := range k.SyncGroups {
		if slices.ContainsFunc(g.Members, func(m string) bool { return slices.Contains(names, m) }) {
			names = append(names, g.Members...)
		}
	}
	out := func(i Instance) bool { return slices.Contains(names, i.Name) }
	if !slices.ContainsFunc(k.Instances, func(i Instance) bool { return !out(i) }) {
		k.LeaveOutAll(why)
		return
	}
	for _, i := range k.Instances {
		if out(i) {
			k.Idle = append(k.Idle, i.Name+": "+why.Text())
		}
	}
	k.Instances = slices.DeleteFunc(k.Instances, out)
	k.SyncGroups = slices.DeleteFunc(k.SyncGroups, func(g SyncGroup) bool { return slices.Contains(names, g.Members[0]) })
	k.TrackFiles = slices.DeleteFunc(k.TrackFiles, func(f TrackFile) bool {
		return !slices.ContainsFunc(k.Instances, func(i Instance) bool {
			return slices.ContainsFunc(k.TermsOf(i), func(t vrrp.Term) bool { return t.Name == f.Name })
		})
	})
}

// TermsOf returns the terms of an instance: its own or those of its sync group.
func (k *Conf) TermsOf(i Instance) []vrrp.Term {
	for _, g := range k.SyncGroups {
		if slices.Contains(g.Members, i.Name) {
			return g.Terms
		}
	}
	return i.Terms
}
