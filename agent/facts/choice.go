package facts

import (
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
	return cluster, nodeip.Choose(snapshot, &cluster.Spec, nodeip.Preference{}), nil
}
