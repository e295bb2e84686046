package facts

import (
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Choice returns the current choice of the node's addresses.
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
	s.logIgnored(choice.Unconfigured)
	return cluster, choice, nil
}

// logIgnored logs interfaces that are ignored because of their names (hard case 37).
func (s *Source) logIgnored(rejected []nodeip.Rejected) {
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
	s.naming.Warn(s.Log, err, "interfaces with invalid names ignored", "no interface ignored any more")
}
