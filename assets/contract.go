package assets

// Treatment is the fate of a file or unit that OpenShift's machine-config operator lays on nodes
// for VIPs, or that vipgen adds.
type Treatment string

const (
	// Replaced by vipgen's of the same name, as its MachineConfigs sort last.
	Replaced Treatment = "replaced"
	// Kept as the operator has it.
	Kept Treatment = "kept"
	// Supplied by vipgen where the operator has none.
	Supplied Treatment = "supplied"
)

// Entry is a row of the operator contract.
type Entry struct {
	// Name is the path of a file, or the name of a unit.
	Name string
	// Roles are pools, separated by spaces: "master worker arbiter".
	Roles string
	// From and To are the first and the last release of the row; "" leaves an end open.
	From, To string
	// Where are conditions that must all be true of a cluster: "vips" (a platform whose VIPs
	// OpenShift knows), "managed" and "user-managed" (its load balancer), "novips" (platforms
	// none and external), the name of a platform, "single", "fencing" and "arbiter" (the
	// control plane). "" is every cluster.
	Where     string
	Treatment Treatment
	// Why is the reason for the treatment: vipgen's use of it, its replacement, or its user.
	Why string
	// Promises are lines of the operator's unit that others rely on, and that vipgen's must
	// have.
	Promises []string
}

const (
	everyRole = "master worker arbiter"
	manifests = "/etc/kubernetes/manifests/"
	disabled  = "/etc/kubernetes/disabled-manifests/"
	resources = "/etc/kubernetes/static-pod-resources/"
	dispatch  = "/etc/NetworkManager/dispatcher.d/"
	unused    = "not run: "
)

// order holds the promises of the operator's nodeip-configuration.service.
var order = []string{
	"Wants=NetworkManager-wait-online.service",
	"After=NetworkManager-wait-online.service firstboot-osupdate.target",
	"Before=kubelet-dependencies.target ovs-configuration.service",
	"RequiredBy=kubelet-dependencies.target",
	"EnvironmentFile=-/etc/default/nodeip-configuration",
}

// Contract is the operator contract: what the machine-config operator of every release from
// 4.12 to 5.2 lays on nodes for VIPs (its templates, rendered for each platform, load balancer
// and topology), and how vipgen treats it.
var Contract = []Entry{
	// Pods and their files.
	{manifests + "coredns.yaml", everyRole, "", "", "vips", Replaced, "also with UserManaged, where OpenShift keeps its own", nil},
	{manifests + "keepalived.yaml", "master worker", "", "", "managed", Replaced, "", nil},
	{manifests + "haproxy.yaml", "master", "", "", "managed", Replaced, "", nil},
	{manifests + "keepalived.yaml", "arbiter", "", "4.19", "managed", Replaced, "", nil},
	{manifests + "haproxy.yaml", "arbiter", "", "4.19", "managed", Replaced, "", nil},
	{manifests + "keepalived.yaml", "arbiter", "4.20", "", "managed", Supplied, "holds no VIP: OpenShift's own keepalived does not know arbiters", nil},
	{manifests + "haproxy.yaml", "arbiter", "4.20", "", "managed", Supplied, "in front of the other nodes' API servers", nil},
	{manifests + "keepalived.yaml", everyRole, "4.13", "", "user-managed", Supplied, "OpenShift's is switched off", nil},
	{manifests + "haproxy.yaml", "master arbiter", "4.13", "", "user-managed", Supplied, "OpenShift's is switched off", nil},
	{disabled + "keepalived.yaml", "master worker", "4.13", "", "user-managed", Kept, unused + "switched off by its place", nil},
	{disabled + "haproxy.yaml", "master", "4.13", "", "user-managed", Kept, unused + "switched off by its place", nil},
	{manifests + "coredns.yaml", everyRole, "", "", "novips", Supplied, "", nil},
	{manifests + "keepalived.yaml", everyRole, "", "", "novips", Supplied, "", nil},
	{manifests + "haproxy.yaml", "master arbiter", "", "", "novips", Supplied, "", nil},
	{manifests + "mdns-publisher.yaml", everyRole, "", "", "", Supplied, "names of nodes before there is an API; OpenShift's own ended with 4.10", nil},
	{resources + "coredns/Corefile.tmpl", everyRole, "", "", "vips", Replaced, "", nil},
	{resources + "keepalived/keepalived.conf.tmpl", everyRole, "", "", "vips", Replaced, "", nil},
	{resources + "haproxy/haproxy.cfg.tmpl", "master", "", "", "vips", Replaced, "", nil},
	{resources + "haproxy/haproxy.cfg.tmpl", "arbiter", "", "4.19", "vips", Replaced, "", nil},
	{resources + "haproxy/haproxy.cfg.tmpl", "arbiter", "4.20", "", "vips", Supplied, "", nil},
	{resources + "coredns/Corefile.tmpl", everyRole, "", "", "novips", Supplied, "", nil},
	{resources + "keepalived/keepalived.conf.tmpl", everyRole, "", "", "novips", Supplied, "", nil},
	{resources + "haproxy/haproxy.cfg.tmpl", "master arbiter", "", "", "novips", Supplied, "", nil},
	{resources + "coredns/hosts.tmpl", everyRole, "", "", "", Supplied, "names of nodes", nil},
	{resources + "vipgen/cluster.yaml", everyRole, "", "", "", Supplied, "all facts of the cluster", nil},
	{resources + "keepalived/scripts/chk_default_ingress.sh.tmpl", everyRole, "", "", "vips", Kept, unused + "the agent checks health itself", nil},
	{resources + "keepalived/scripts/chk_mcs_script.sh.tmpl", "master arbiter", "4.16", "", "vips", Kept, unused + "the agent checks health itself", nil},
	{resources + "keepalived/scripts/chk_ocp_script.sh.tmpl", "master arbiter", "", "", "vips", Kept, unused + "the agent checks health itself", nil},
	{resources + "keepalived/scripts/chk_ocp_script_both.sh.tmpl", "master arbiter", "", "", "vips", Kept, unused + "the agent checks health itself", nil},
	{"/etc/keepalived/monitor.conf", everyRole, "", "", "vips", Replaced, "holds the VRRP settings to migrate to", nil},
	{"/etc/keepalived/monitor.conf", everyRole, "", "", "novips", Supplied, "holds the VRRP settings to migrate to", nil},

	// The node's address.
	{"nodeip-configuration.service", everyRole, "", "", "", Replaced, "chooses the address; kubelet and CRI-O wait for it", order},
	{"nodeip-configuration-vsphere-upi.service", "master worker", "4.13", "", "vsphere", Kept, unused + "it is not enabled", nil},
	{"/usr/local/bin/configure-ip-forwarding.sh", everyRole, "4.14", "", "vips", Kept, unused + "vipgen-agent node-ip set switches forwarding on", nil},
	{"kubelet-dependencies.target", everyRole, "", "", "", Kept, "holds kubelet and CRI-O back until the address is chosen", nil},
	{"kubelet.service", everyRole, "", "", "", Kept, "reads its drop-in 20-nodenet.conf; on platforms with VIPs it waits for /run/resolv-prepender-kni-conf-done, which vipgen-agent resolv-conf makes", nil},
	{"crio.service", everyRole, "", "", "", Kept, "reads its drop-in 20-nodenet.conf", nil},
	{"kubelet-auto-node-size.service", everyRole, "", "", "", Kept, "", nil},
	{"kubelet-cleanup.service", everyRole, "4.14", "", "", Kept, "", nil},
	{"kubelet-selinux-relabel.service", everyRole, "4.13", "4.13", "", Kept, "", nil},
	{"ovs-configuration.service", everyRole, "", "", "", Kept, "makes br-ex on the interface of /run/nodeip-configuration/primary-ip, so it starts after it is written", nil},
	{"nmstate.service", everyRole, "4.16", "", "", Kept, "network-online.target waits for it", nil},
	{"nmstate-configuration.service", everyRole, "4.16", "", "", Kept, "waits for nodeip-configuration.service, and network-online.target for it: nothing that fetches the first image may wait for that target", nil},
	{"wait-for-primary-ip.service", everyRole, "4.16", "4.22", "", Kept, "waits for the address of /run/nodeip-configuration/primary-ip", nil},
	{"wait-for-node-ip.service", everyRole, "4.23", "", "", Kept, "waits for the address of /run/nodeip-configuration/primary-ip", nil},
	{"wait-for-br-ex-up.service", everyRole, "4.14", "", "vips", Kept, "waits for /run/nodeip-configuration/br-ex-up, which the dispatcher script makes", nil},
	{"/usr/local/bin/wait-for-br-ex-up.sh", everyRole, "4.14", "", "vips", Kept, "", nil},
	{"wait-for-ipsec-connect.service", everyRole, "4.15", "", "", Kept, "", nil},
	{"/usr/local/bin/configure-ovs.sh", everyRole, "", "", "", Kept, "run by ovs-configuration.service", nil},
	{"/usr/local/bin/wait-for-primary-ip.sh", everyRole, "4.16", "4.22", "", Kept, "run by wait-for-primary-ip.service", nil},
	{"/usr/local/bin/wait-for-node-ip.sh", everyRole, "4.23", "", "", Kept, "run by wait-for-node-ip.service", nil},

	// Static pods without VIPs.
	{manifests + "recycler-pod.yaml", "master", "", "", "", Kept, "", nil},
	{manifests + "criometricsproxy.yaml", everyRole, "", "", "", Kept, "", nil},

	// Name servers and names.
	{"on-prem-resolv-prepender.service", everyRole, "", "", "vips", Replaced, "the agent reads /run/resolv-prepender/env itself, at every run and when it changes", []string{"After=crio-wipe.service"}},
	{"on-prem-resolv-prepender.path", everyRole, "4.14", "", "vips", Replaced, "", []string{"PathChanged=/run/NetworkManager/resolv.conf", "PathChanged=/run/resolv-prepender/env"}},
	{"on-prem-resolv-prepender.path", everyRole, "", "4.13", "vips", Supplied, "changes of the network's name servers", nil},
	{"on-prem-resolv-prepender.service", everyRole, "", "", "novips", Supplied, "", nil},
	{"on-prem-resolv-prepender.path", everyRole, "", "", "novips", Supplied, "", nil},
	{"/usr/local/bin/resolv-prepender.sh", everyRole, "", "", "vips", Kept, unused + "the unit runs vipgen-agent resolv-conf", nil},
	{dispatch + "30-resolv-prepender", everyRole, "", "", "vips", Kept, "writes DHCP's domains to /run/resolv-prepender/env, starts on-prem-resolv-prepender.service, makes /run/nodeip-configuration/br-ex-up", nil},
	{"/etc/NetworkManager/conf.d/99-vipgen.conf", everyRole, "", "", "", Supplied, "NetworkManager leaves /etc/resolv.conf alone", nil},
	{"/etc/NetworkManager/conf.d/99-kni.conf", everyRole, "", "", "baremetal", Kept, "", nil},
	{"/etc/NetworkManager/conf.d/99-nutanix.conf", "master worker", "", "", "nutanix", Kept, "", nil},
	{"/etc/NetworkManager/conf.d/99-openstack.conf", "master worker", "", "", "openstack", Kept, "", nil},
	{"/etc/NetworkManager/conf.d/99-ovirt.conf", "master worker", "", "", "ovirt", Kept, "", nil},
	{"/etc/NetworkManager/conf.d/99-vsphere.conf", "master worker", "", "", "vsphere", Kept, "", nil},
	{"/etc/NetworkManager/conf.d/02-ipv6.conf", "master worker", "4.14", "", "openstack", Kept, "", nil},
	{"node-valid-hostname.service", everyRole, "", "", "", Kept, "waits for a host name, which NetworkManager looks up again after a change of resolv.conf", nil},

	// Specific to a platform or a topology.
	{dispatch + "30-static-dhcp", "master worker", "", "4.18", "baremetal", Kept, "", nil},
	{dispatch + "30-static-dhcpv6", "master worker", "", "4.18", "baremetal", Kept, "", nil},
	{dispatch + "forcedns-rhel9-fix", "master", "4.13", "", "baremetal single", Kept, "", nil},
	{"/etc/dnsmasq.conf", "master worker", "4.13", "", "baremetal single", Kept, "", nil},
	{"/var/lib/mco/nm-clean-initrd-state", everyRole, "", "", "baremetal", Kept, "", nil},
	{"NetworkManager-clean-initrd-state.service", everyRole, "", "", "", Kept, "", nil},
	{"/usr/local/bin/recover-kubeconfig.sh", "arbiter", "", "", "arbiter", Kept, "", nil},
	{"/usr/local/bin/openstack-afterburn-hostname", "master worker", "", "4.17", "openstack", Kept, "", nil},
	{"/usr/local/bin/openstack-kubelet-nodename", "master worker", "", "", "openstack", Kept, "", nil},
	{"openstack-kubelet-nodename.service", "master worker", "", "", "openstack", Kept, "", nil},
	{"/usr/local/bin/vsphere-hostname.sh", "master worker", "", "", "vsphere", Kept, "", nil},
	{"/etc/sudoers.d/hacluster-taint", "master", "4.22", "", "fencing", Kept, "", nil},
	{"/usr/local/bin/fencing_validator", "master", "4.21", "", "fencing", Kept, "", nil},
	{"/usr/local/bin/taint-fenced-node.sh", "master", "4.22", "", "fencing", Kept, "", nil},
	{"/usr/local/bin/untaint-fenced-node.sh", "master", "4.22", "", "fencing", Kept, "", nil},
	{"/var/lib/pacemaker/alerts/tnf-taint-alert.sh", "master", "4.22", "", "fencing", Kept, "", nil},
	{"/var/lib/pacemaker/alerts/tnf-untaint-alert.sh", "master", "4.22", "", "fencing", Kept, "", nil},
}
