package assets

// Release holds the facts of an OpenShift release that matter to VIPs.
type Release struct {
	// Version has no patch level, as "4.12".
	Version string
	// Ignition is the newest spec version that the release's machine-config operator parses
	// (ParseAndConvertConfig, by the packages that it imports; from 4.14 on
	// InternalMCOIgnitionVersion too). It refuses MachineConfigs of a newer one, and an
	// installation with them fails.
	Ignition string
	// HAProxy and Keepalived are the versions in its images.
	HAProxy, Keepalived string
	// New names what the release introduced.
	New string
}

// Releases are the supported releases, oldest first: by the release's images, and by the
// templates of its machine-config operator.
var Releases = []Release{
	{"4.12", "3.2.0", "2.2", "2.1.5 or 2.2", "systemd 239 (RHEL 8): no `Restart=` in oneshot services. `loadBalancer.type` does not count: vipgen refuses `UserManaged`"},
	{"4.13", "3.4.0", "2.2", "2.1.5 or 2.2", "`UserManaged` switches off OpenShift's keepalived and HAProxy; its CoreDNS stays"},
	{"4.14", "3.4.0", "2.6", "2.1.5 or 2.2", "OVN-Kubernetes restricts forwarding; `wait-for-br-ex-up.service`; VIPs carry the label `vip`"},
	{"4.15", "3.4.0", "2.6", "2.1.5 or 2.2", ""},
	{"4.16", "3.4.0", "2.8", "2.2.8", "`/etc/default/nodeip-configuration` counts on platforms with VIPs; `network-online.target` waits for the node's address"},
	{"4.17", "3.4.0", "2.8", "2.2.8", "node disruption policies"},
	{"4.18", "3.4.0", "2.8", "2.2.8", ""},
	{"4.19", "3.5.0", "2.8", "2.2.8", ""},
	{"4.20", "3.5.0", "2.8", "2.2.8", "arbiters; the operator's run no keepalived and no HAProxy"},
	{"4.21", "3.5.0", "2.8", "2.2.8", "`dnsRecordsType` (feature gate)"},
	{"4.22", "3.5.0", "2.8", "2.2.8", "static pods with a number as their priority, for graceful shutdown"},
	{"4.23", "3.5.0", "2.8", "2.2.8", "`wait-for-node-ip.service`"},
	{"5.0", "3.5.0", "2.8", "2.2.8", "`bgpVIPConfig` (preview)"},
	{"5.1", "3.5.0", "2.8", "2.2.8", ""},
	{"5.2", "3.5.0", "2.8", "2.2.8", ""},
}

// NodeIPHints returns the variables of /etc/default/nodeip-configuration that take effect on
// the nodes of a cluster, the first that is set wins (machine-config-operator,
// templates/common/on-prem and _base, units/nodeip-configuration.service). Where the operator
// knows VIPs, none did before 4.16. An unknown release is taken for a later one.
func NodeIPHints(operatorHasVIPs bool, release string) []string {
	switch {
	case !operatorHasVIPs:
		return []string{"NODEIP_HINT", "KUBELET_NODEIP_HINT"}
	case release == "" || AtLeast(release, "4.16"):
		return []string{"NODEIP_HINT"}
	}
	return nil
}
