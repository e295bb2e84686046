package process

import (
	"os"
	"syscall"
)

// WriteProgram writes an executable file. It blocks forks meanwhile: a child would inherit the open
// file until its exec, and running the program would fail with ETXTBSY (execve(2)).
func WriteProgram(path string, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o755)
}
