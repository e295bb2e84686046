package facts

import (
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Choice returns the addresses that the node is to be known by now.
func (s *Source) Choice() (nodeip.Choice, error) {
	_, choice, err := s.choose()
	return choice, err
}

func (s *Source) choose() (*v1alpha1.ClusterConfig, nodeip.Choice, error) {
	cluster, err := s.loadCluster()
	if err != nil {
		return nil, nodeip.Choice{}, err
	}
	snapshot, err := nodeip.Read()
	if err != nil {
		return nil, nodeip.Choice{}, err
	}
	choice := nodeip.Choose(snapshot, &cluster.Spec, nodeip.Preference{})
	s.sayIgnored(choice.Unconfigured)
	return cluster, choice, nil
}

// sayIgnored logs which interfaces are left out for their names alone (hard case 37).
func (s *Source) sayIgnored(rejected []nodeip.Rejected) {
	var names []string
	for _, r := range rejected {
		if !v1alpha1.ValidInterface(r.Interface) && !slices.Contains(names, r.Interface) {
			names = append(names, r.Interface)
		}
	}
	var err error
	if len(names) > 0 {
		err = fmt.Errorf("names that no configuration can have: %.200q", names[:min(len(names), 5)])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored = len(names)
	s.naming.Warn(s.Log, err, "ignoring interfaces and their addresses", "no interface is ignored for its name any more")
}
