package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/lab/control"
)

// A detached lab runs the same command again, in a session of its own. When the lab is up, it
// reports that on the descriptor readyFD, which readyVar names; until then its errors go to the
// streams of the first process.
const (
	readyVar = "VIPGEN_LAB_READY"
	readyFD  = 3
)

// readiness returns the file to report readiness on; nil in a process that is not detached. It is
// not inherited by further programs.
func readiness() *os.File {
	if os.Getenv(readyVar) != fmt.Sprint(readyFD) {
		return nil
	}
	os.Unsetenv(readyVar)
	unix.CloseOnExec(readyFD)
	return os.NewFile(readyFD, "ready")
}

// leave lets the first process exit. Further output of this one goes to the log.
func leave(ready *os.File, log string) error {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(f.Fd()), fd, 0); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(ready, "up")
	return errors.Join(err, ready.Close())
}

// detach runs the command line in the background and returns when its lab is up.
func (a *app) detach(installConfig string, up upFlags) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	errOut, theirErr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer errOut.Close()
	cmd := exec.Command(self, a.args...)
	if installConfig == "-" {
		cmd.Stdin = a.In
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirErr, theirErr, []*os.File{theirs}
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", readyVar, readyFD))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close()
	theirErr.Close()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		for range signals {
			cmd.Process.Signal(syscall.SIGTERM)
		}
	}()
	io.Copy(a.Err, errOut) // until the lab is up or has ended
	if said, _ := io.ReadAll(ready); len(said) == 0 {
		err := cmd.Wait()
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.ExitCode() > 0 {
			return command.Code(ended.ExitCode())
		}
		return errors.Join(errors.New("the lab ended before it was up"), err)
	}
	_, err = fmt.Fprint(a.Out, "the lab runs in the background:\n", hints(up.announce == string(v1alpha1.AnnounceBGP), up.where()))
	return err
}

// hints returns commands for a lab: those of racks as they can be run.
func hints(routed bool, where string) string {
	if !routed {
		return fmt.Sprintf(`  vipgen lab status%[1]s      print VIPs and nodes
  vipgen lab kill NODE%[1]s   power off a node; 'vipgen lab heal%[1]s' powers it on
  vipgen lab down%[1]s        remove the lab
`, where)
	}
	return fmt.Sprintf(`  # which nodes routers send to; namespaces of client and routers
  vipgen lab status%[1]s
  # what routers know: core and rack-a have FRR, rack-b has BIRD
  vipgen lab exec%[1]s core -- vtysh -c 'show bgp ipv4'
  vipgen lab exec%[1]s rack-a -- vtysh -c 'show bgp summary'
  vipgen lab exec%[1]s rack-b -- birdc show route
  # what a node announces
  vipgen lab exec%[1]s master-0 -- vipgen-agent status
  # power off a node: the API VIP still answers; then power it on
  vipgen lab kill%[1]s master-0
  vipgen lab exec%[1]s client -- curl -sk https://198.51.100.5:6443/readyz
  vipgen lab heal%[1]s
  # remove the lab
  vipgen lab down%[1]s
`, where)
}

// where returns the flags with which other commands find the lab.
func (f *labFlags) where() (flags string) {
	if f.dir != control.DefaultBase {
		flags += " --dir " + f.dir
	}
	if f.name != "" {
		flags += " --name " + f.name
	}
	return flags
}
