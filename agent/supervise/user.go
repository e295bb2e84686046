package supervise

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// DaemonUser is the user and group of unprivileged daemons, not used by anything else on
// a node: systemd's dynamic users end at 65519, and images call 65532 "nonroot".
const DaemonUser = 65523

// unprivileged makes cmd run as DaemonUser, with only the capability for low ports, if
// the agent can change users and still signal the daemon. In a pod of an earlier version
// it cannot: there the daemon runs as the agent's user.
func unprivileged(cmd *exec.Cmd) {
	if !changesUser() {
		return
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: DaemonUser, Gid: DaemonUser}
	// A program with this file capability (hard case 28) is executed with it, and one
	// without gets it from here.
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
}

// changesUser reports whether the agent can run daemons as DaemonUser.
func changesUser() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL | 1<<unix.CAP_NET_BIND_SERVICE
	return sets[0].Effective&needed == needed
}
