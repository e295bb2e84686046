package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/rawio"
)

// answersName is the file, in the directory of a job, with the time of its daemon's last
// answer. It has its own directory: each write wakes all watchers of the directory.
const answersName = "daemon/answered"

// Answers stores the time of the last answer of a job's daemon, so that other jobs need
// not probe it, too.
type Answers struct {
	path string
	now  func() time.Duration
}

// Answers returns the Answers of a job's daemon.
func (d *Dir) Answers(j Job) *Answers {
	return &Answers{path: filepath.Join(d.path, j.JobName(), answersName), now: monotonic}
}

// monotonic returns the kernel's monotonic clock, which all containers share and nothing
// sets (hard case 27).
func monotonic() time.Duration { return rawio.Clock(unix.CLOCK_MONOTONIC) }

// Record records an answer of the daemon. It overwrites the previous one in place, which
// works on a full disk. If it fails, readers probe the daemon.
func (a *Answers) Record() error {
	const flags = unix.O_WRONLY | unix.O_CREAT
	file, err := rawio.Open(a.path, flags, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(a.path), 0o755); err == nil {
			file, err = rawio.Open(a.path, flags, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("shared state: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(fmt.Appendf(nil, "%020d\n", a.now())); err != nil {
		return fmt.Errorf("shared state: %w", err)
	}
	return nil
}

// Age returns the time since the daemon's last answer. It fails if that is unknown, for
// example because the job's version does not record it; then the caller probes the
// daemon.
func (a *Answers) Age() (time.Duration, error) {
	file, err := rawio.Open(a.path, unix.O_RDONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("shared state: %w", err)
	}
	defer file.Close()
	var data [32]byte
	n, err := file.Read(data[:])
	if err != nil {
		return 0, fmt.Errorf("shared state: %w", err)
	}
	if n != 21 || data[20] != '\n' {
		return 0, fmt.Errorf("shared state %s: not a time", a.path)
	}
	at, err := strconv.ParseInt(string(data[:20]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("shared state %s: %w", a.path, err)
	}
	ago := a.now() - time.Duration(at)
	if ago < 0 {
		return 0, errors.New("shared state " + a.path + ": a time in the future")
	}
	return ago, nil
}
