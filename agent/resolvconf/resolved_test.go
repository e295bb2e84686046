package resolvconf

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/vipgen/vipgen/internal/testkit"
)

// bus runs a real D-Bus daemon whose socket is where a host has its own, below
// the root that it returns.
func bus(t *testing.T) (root string) {
	t.Helper()
	testkit.Live(t)
	root = t.TempDir()
	socket := filepath.Join(root, systemBus)
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(root, "bus.conf")
	err := os.WriteFile(conf, []byte(`<busconfig><type>system</type><listen>unix:path=`+socket+`</listen>
<policy context="default"><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/><allow user="*"/></policy></busconfig>`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(testkit.Program(t, "dbus-daemon"), "--nofork", "--print-address", "--config-file="+conf)
	daemon.Stderr = os.Stderr
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Kill()
		daemon.Wait()
	})
	// The address is printed once the socket listens.
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return root
}

// systemd stands in for systemd's own object on the bus.
type systemd struct{ calls chan string }

func (s systemd) ReloadOrRestartUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	s.calls <- unit + " " + mode
	if unit != "systemd-resolved.service" {
		return "", dbus.MakeFailedError(os.ErrNotExist)
	}
	return "/org/freedesktop/systemd1/job/1", nil
}

// networkManager stands in for NetworkManager's object on the bus.
type networkManager struct{ flags chan uint32 }

func (n networkManager) Reload(flags uint32) *dbus.Error {
	n.flags <- flags
	return nil
}

func TestReloadNetworkManager(t *testing.T) {
	root := bus(t)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := ReloadNetworkManager(ctx, root); err == nil || !strings.Contains(err.Error(), "org.freedesktop.NetworkManager") {
		t.Errorf("without NetworkManager: error %v, want one with its name", err)
	}
	conn, err := dbus.Connect("unix:path=" + filepath.Join(root, systemBus))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := networkManager{make(chan uint32, 1)}
	if err := conn.Export(n, "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.NetworkManager", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	if err := ReloadNetworkManager(ctx, root); err != nil {
		t.Fatal(err)
	}
	if got := <-n.flags; got != 2 { // NM_MANAGER_RELOAD_FLAGS_DNS_RC
		t.Errorf("asked to reload %#x", got)
	}
}

func TestReloadResolved(t *testing.T) {
	root := bus(t)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := ReloadResolved(ctx, root); err == nil || !strings.Contains(err.Error(), "org.freedesktop.systemd1") {
		t.Errorf("without systemd: error %v, want one with its name", err)
	}
	conn, err := dbus.Connect("unix:path=" + filepath.Join(root, systemBus))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := systemd{make(chan string, 1)}
	if err := conn.Export(s, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	if err := ReloadResolved(ctx, root); err != nil {
		t.Fatal(err)
	}
	if got := <-s.calls; got != "systemd-resolved.service replace" {
		t.Errorf("asked for %q", got)
	}
}

func TestReloadWithoutABus(t *testing.T) {
	err := ReloadResolved(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "connecting to D-Bus") {
		t.Errorf("error %v, want one about D-Bus", err)
	}
}
