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

	// ModeFile holds the VRRP settings that a running cluster is to move to.
	ModeFile = "/etc/keepalived/monitor.conf"
	// UserModeFile wins over it; vipgen renders none.
	UserModeFile = "/etc/keepalived/monitor-user.conf"

	// RunDir has a directory for each of the agent's jobs on a node, see [JobDir].
	RunDir = "/run/vipgen"
	// TrackDir holds the files that keepalived watches.
	TrackDir = RunDir + "/keepalived/track"
	// HAProxySocket is HAProxy's admin socket, in a directory that no other
	// container of the node sees.
	HAProxySocket = RunDir + "/haproxy/sockets/admin.sock"
	// NodeIPDir holds what was chosen as the node's address.
	NodeIPDir = "/run/nodeip-configuration"
)

// RootVariable is the environment variable that names the directory of a node's file system
// to the agent where no flag does. vipgen lab sets it, whose nodes share this machine's /.
const RootVariable = "VIPGEN_ROOT"

// JobDir is the directory that the container of a job alone may write to. All
// containers read what is in it, but for volumes of a container's own.
func JobDir(job string) string { return RunDir + "/" + job }

// LiveFiles are those that the agent applies by itself when they change.
func LiveFiles() []string {
	return []string{ModeFile, UserModeFile, ClusterConfigPath, CorefileTemplate, HostsTemplate, HAProxyTemplate, KeepalivedTemplate}
}
