package process

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that is to be executed. No process begins meanwhile: it would
// have the file open for writing until it executes its own program, and the kernel executes
// none that somebody writes (ETXTBSY, execve(2)).
func WriteProgram(path string, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o755)
}
