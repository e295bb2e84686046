package supervise

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// DaemonUser is the user and the group of daemons that run without the agent's rights:
// one that nothing else on a node has, neither systemd's dynamic users (up to 65519)
// nor images, which call 65532 "nonroot".
const DaemonUser = 65523

// unprivileged has cmd run as DaemonUser, with nothing but low ports, where the agent
// can change users and still tell the daemon something. In a pod of an earlier version
// it cannot: there the daemon runs as the agent does.
func unprivileged(cmd *exec.Cmd) {
	if !changesUser() {
		return
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: DaemonUser, Gid: DaemonUser}
	// A program with this file capability (hard case 28) is executed with it, and one
	// without gets it from here.
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
}

// changesUser says whether the agent can run daemons as DaemonUser.
func changesUser() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL | 1<<unix.CAP_NET_BIND_SERVICE
	return sets[0].Effective&needed == needed
}
