package v1alpha1

// enum is a type whose method Values lists its values, for validation, the JSON Schema of
// vipgen.yaml, completion and `vipgen explain FIELD`.
type enum[T any] interface {
	~string
	Values() []T
}

// Values returns the load balancer types.
func (LoadBalancerType) Values() []LoadBalancerType {
	return []LoadBalancerType{LoadBalancerInCluster, LoadBalancerExternal, LoadBalancerNone}
}

// Values returns the settings of apiServer.local.
func (LocalAPI) Values() []LocalAPI {
	return []LocalAPI{LocalAPIControlPlane, LocalAPIAllNodes, LocalAPINone}
}

// Values returns the kinds of announcement.
func (Announce) Values() []Announce { return []Announce{AnnounceVRRP, AnnounceBGP, AnnounceTable} }

// Values returns the VRRP profiles.
func (Profile) Values() []Profile {
	return []Profile{ProfileFast, ProfileVirtual, ProfileClassic, ProfileCustom}
}

// Values returns the VRRP modes.
func (Mode) Values() []Mode { return []Mode{ModeUnicast, ModeMulticast} }

// Values returns the addresses of metrics.
func (MetricsAddress) Values() []MetricsAddress {
	return []MetricsAddress{MetricsOnLoopback, MetricsOnNode}
}

// Values returns the topologies of a control plane.
func (Topology) Values() []Topology {
	return []Topology{TopologyHighlyAvailable, TopologyHighlyAvailableArbiter, TopologyDualReplica, TopologySingleReplica}
}

// Values returns the roles of a group.
func (GroupRole) Values() []GroupRole { return []GroupRole{GroupAPI, GroupIngress, GroupDNS} }
