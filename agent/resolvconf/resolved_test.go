package resolvconf

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/vipgen/vipgen/internal/testkit"
)

// bus runs a real D-Bus daemon with a host's socket path below the root that it returns.
func bus(t *testing.T) (root string) {
	t.Helper()
	testkit.Live(t)
	root = t.TempDir()
	socket := filepath.Join(root, systemBus)
	testkit.Must(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	conf := filepath.Join(root, "bus.conf")
	err := os.WriteFile(conf, []byte(`<busconfig><type>system</type><listen>unix:path=`+socket+`</listen>
<policy context="default"><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/><allow user="*"/></policy></busconfig>`), 0o644)
	testkit.Must(t, err)
	daemon := exec.Command(testkit.Program(t, "dbus-daemon"), "--nofork", "--print-address", "--config-file="+conf)
	daemon.Stderr = os.Stderr
	out, err := daemon.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, daemon.Start())
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
	testkit.Fails(t, ReloadNetworkManager(ctx, root), "org.freedesktop.NetworkManager")
	conn, err := dbus.Connect("unix:path=" + filepath.Join(root, systemBus))
	testkit.Must(t, err)
	defer conn.Close()
	n := networkManager{make(chan uint32, 1)}
	testkit.Must(t, conn.Export(n, "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager"))
	if _, err := conn.RequestName("org.freedesktop.NetworkManager", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, ReloadNetworkManager(ctx, root))
	if got := <-n.flags; got != 2 { // NM_MANAGER_RELOAD_FLAGS_DNS_RC
		t.Errorf("asked to reload %#x", got)
	}
}

func TestReloadResolved(t *testing.T) {
	root := bus(t)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	testkit.Fails(t, ReloadResolved(ctx, root), "org.freedesktop.systemd1")
	conn, err := dbus.Connect("unix:path=" + filepath.Join(root, systemBus))
	testkit.Must(t, err)
	defer conn.Close()
	s := systemd{make(chan string, 1)}
	testkit.Must(t, conn.Export(s, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	if _, err := conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, ReloadResolved(ctx, root))
	testkit.Equal(t, "systemd-resolved.service replace", <-s.calls)
}

func TestReloadWithoutABus(t *testing.T) {
	err := ReloadResolved(t.Context(), t.TempDir())
	testkit.Fails(t, err, "connecting to D-Bus")
}
