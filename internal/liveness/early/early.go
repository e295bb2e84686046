// Package early answers a liveness probe of a working job before the agent's other packages
// initialise, which takes several times as long as the probe. It imports next to nothing, since
// Go initialises a package once its imports are (see the language's specification, program
// initialization); only the agent's program may import it.
package early

import (
	"os"
	"syscall"
)

// Socket is the name of the socket, in the directory of a job, that answers with Alive when the
// job and its daemon work and there is nothing to log. Every other answer, and none within
// Patience, leaves the probe to the command line, which reports the problem.
const (
	Socket = "probe"
	Alive  = "alive"
	// Patience and the time of a probe on the command line together are below kubelet's
	// time-out. In milliseconds: time is not imported.
	Patience = 500
)

// dir is the parent of the jobs' directories.
const dir = "/run/vipgen"

func init() {
	if len(os.Args) == 3 && os.Args[1] == "probe" && Ask(dir, os.Args[2]) {
		os.Exit(0)
	}
}

// Ask reports whether a job answers Alive, on the socket in its directory below dir.
func Ask(dir, name string) bool {
	for _, c := range name {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	limit := syscall.NsecToTimeval(Patience * 1e6)
	for _, option := range []int{syscall.SO_SNDTIMEO, syscall.SO_RCVTIMEO} { // connect(2) obeys the first
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &limit); err != nil {
			return false
		}
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: dir + "/" + name + "/" + Socket}); err != nil {
		return false
	}
	answer := make([]byte, len(Alive)+1)
	n, err := syscall.Read(fd, answer)
	return err == nil && string(answer[:n]) == Alive
}
