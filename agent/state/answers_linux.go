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

// answersName is the file, below the directory of a job, that says when its daemon answered
// last. It has a directory to itself: each write wakes up all who watch its directory.
const answersName = "daemon/answered"

// Answers is when the daemon of a job answered that job last. Others that want to know
// whether it answers need not ask it as well.
type Answers struct {
	path string
	now  func() time.Duration
}

// Answers are those of that job's daemon.
func (d *Dir) Answers(j Job) *Answers {
	return &Answers{path: filepath.Join(d.path, j.JobName(), answersName), now: monotonic}
}

// monotonic is the kernel's monotonic clock, which all containers share and nobody sets
// (hard case 27).
func monotonic() time.Duration { return rawio.Clock(unix.CLOCK_MONOTONIC) }

// Note says that the daemon has answered just now. It takes the room of what is there, so
// that a full disk keeps it from nothing. Where it fails, readers find out for themselves.
func (a *Answers) Note() error {
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

// Ago is how long ago the daemon answered. It is an error if that is not known, as while the
// job is of a version that does not say it, and the daemon is to be asked then.
func (a *Answers) Ago() (time.Duration, error) {
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
		return 0, errors.New("shared state " + a.path + ": a time that is still to come")
	}
	return ago, nil
}
