package testkit

import (
	"path"
	"slices"
)

// runTimeWrites are the files that vipgen's pods and units write to a node's disk at run time,
// as patterns of path.Match. None is a file of a MachineConfig: the machine config daemon marks
// a node degraded where one of those differs (validateOnDiskState, hard case 57).
var runTimeWrites = []string{
	"/etc/coredns/Corefile", "/etc/coredns/hosts", "/etc/coredns/.*",
	"/etc/haproxy/haproxy.cfg", "/etc/haproxy/.*",
	"/etc/keepalived/keepalived.conf", "/etc/keepalived/.*",
	"/etc/resolv.conf", "/etc/.resolv.conf.vipgen-new",
	"/etc/systemd/resolved.conf.d/60-vipgen.conf", "/etc/systemd/resolved.conf.d/.*",
	"/etc/systemd/system/crio.service.d/20-nodenet.conf", "/etc/systemd/system/crio.service.d/.*",
	"/etc/systemd/system/kubelet.service.d/20-nodenet.conf", "/etc/systemd/system/kubelet.service.d/.*",
}

// RunTimeWrites returns patterns of the files on disk that vipgen writes at run time.
func RunTimeWrites() []string { return slices.Clone(runTimeWrites) }

// WrittenAtRunTime reports whether vipgen writes a file at run time.
func WrittenAtRunTime(file string) bool {
	return slices.ContainsFunc(runTimeWrites, func(pattern string) bool {
		match, err := path.Match(pattern, file)
		return match && err == nil
	})
}
