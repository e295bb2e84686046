package v1alpha1

// Paths on a node. Operators of these clusters know most of them, and the
// operator's own files stand at the same ones, so that a MachineConfig whose
// name sorts later replaces them.
const (
	ResourceDir        = "/etc/kubernetes/static-pod-resources"
	ClusterConfigPath  = ResourceDir + "/vipgen/cluster.yaml"
	KeepalivedTemplate = ResourceDir + "/keepalived/keepalived.conf.tmpl"
	HAProxyTemplate    = ResourceDir + "/haproxy/haproxy.cfg.tmpl"
	CorefileTemplate   = ResourceDir + "/coredns/Corefile.tmpl"
	HostsTemplate      = ResourceDir + "/coredns/hosts.tmpl"

	ManifestDir = "/etc/kubernetes/manifests"
	// DisabledManifestDir has those of pods that are switched off.
	DisabledManifestDir = "/etc/kubernetes/disabled-manifests"

	KeepalivedConf = "/etc/keepalived/keepalived.conf"
	HAProxyConf    = "/etc/haproxy/haproxy.cfg"
	Corefile       = "/etc/coredns/Corefile"
	HostsFile      = "/etc/coredns/hosts"

	// ModeFile holds the way of electing that a running cluster is to move to.
	ModeFile = "/etc/keepalived/monitor.conf"
	// UserModeFile wins over it; vipgen renders none.
	UserModeFile = "/etc/keepalived/monitor-user.conf"

	// RunDir is shared by the agent's jobs on a node.
	RunDir = "/run/vipgen"
	// TrackDir holds the files that keepalived watches.
	TrackDir = RunDir + "/track"
	// HAProxySocket is HAProxy's admin socket.
	HAProxySocket = RunDir + "/haproxy/admin.sock"
	// NodeIPDir holds what was chosen as the node's address.
	NodeIPDir = "/run/nodeip-configuration"
)

// LiveFiles are those that the agent applies by itself when they change.
func LiveFiles() []string {
	return []string{ModeFile, UserModeFile, ClusterConfigPath, CorefileTemplate, HostsTemplate, HAProxyTemplate, KeepalivedTemplate}
}
