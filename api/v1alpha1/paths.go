package v1alpha1

// Paths on a node. Most are known to operators of these clusters and shared with the operator's
// own files, so that a MachineConfig whose name sorts later replaces them.
const (
	ResourceDir        = "/etc/kubernetes/static-pod-resources"
	ClusterConfigPath  = ResourceDir + "/vipgen/cluster.yaml"
	KeepalivedTemplate = ResourceDir + "/keepalived/keepalived.conf.tmpl"
	HAProxyTemplate    = ResourceDir + "/haproxy/haproxy.cfg.tmpl"
	CorefileTemplate   = ResourceDir + "/coredns/Corefile.tmpl"
	HostsTemplate      = ResourceDir + "/coredns/hosts.tmpl"

	ManifestDir = "/etc/kubernetes/manifests"
	// DisabledManifestDir holds manifests of pods that are disabled.
	DisabledManifestDir = "/etc/kubernetes/disabled-manifests"

	KeepalivedConf = "/etc/keepalived/keepalived.conf"
	HAProxyConf    = "/etc/haproxy/haproxy.cfg"
	Corefile       = "/etc/coredns/Corefile"
	HostsFile      = "/etc/coredns/hosts"

	// ModeFile holds the VRRP settings that a running cluster migrates to.
	ModeFile = "/etc/keepalived/monitor.conf"
	// UserModeFile overrides it; vipgen renders none.
	UserModeFile = "/etc/keepalived/monitor-user.conf"

	// BGPKept is next to what the job that announces VIPs keeps over reboots.
	BGPKept = "/var/lib/vipgen/bgp/bgp"

	// RunDir has a directory for each of the agent's jobs on a node, see [JobDir].
	RunDir = "/run/vipgen"
	// TrackDir holds the files that keepalived watches.
	TrackDir = RunDir + "/keepalived/track"
	// HAProxySocket is HAProxy's admin socket, in a directory that no other container of the
	// node has.
	HAProxySocket = RunDir + "/haproxy/sockets/admin.sock"
	// NodeIPDir holds the chosen address of the node.
	NodeIPDir = "/run/nodeip-configuration"
)

// RootVariable is the environment variable with the root of a node's file system, used where no
// flag sets it. vipgen lab sets it, whose nodes share this machine's /.
const RootVariable = "VIPGEN_ROOT"

// JobDir returns the directory that only the container of a job may write to. All containers
// can read it, except volumes of a container's own.
func JobDir(job string) string { return RunDir + "/" + job }

// LiveFiles returns the files that the agent applies by itself when they change.
func LiveFiles() []string {
	return []string{ModeFile, UserModeFile, ClusterConfigPath, CorefileTemplate, HostsTemplate, HAProxyTemplate, KeepalivedTemplate}
}
