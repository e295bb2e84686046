package resolvconf

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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

// standIn exports an object on a bus under a service's name, at which reload failed before.
func standIn(t *testing.T, root string, object any, path dbus.ObjectPath, service, iface string, reload func(context.Context, string) error) {
	t.Helper()
	testkit.Fails(t, reload(t.Context(), root), service)
	conn, err := dbus.Connect("unix:path=" + filepath.Join(root, systemBus))
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	testkit.Must(t, conn.Export(object, path, iface))
	_, err = conn.RequestName(service, dbus.NameFlagDoNotQueue)
	testkit.Must(t, err)
	testkit.Must(t, reload(t.Context(), root))
}

func TestReload(t *testing.T) {
	root := bus(t)
	n, s := networkManager{make(chan uint32, 1)}, systemd{make(chan string, 1)}
	standIn(t, root, n, "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "org.freedesktop.NetworkManager", ReloadNetworkManager)
	testkit.Equal(t, 2, <-n.flags) // NM_MANAGER_RELOAD_FLAGS_DNS_RC
	standIn(t, root, s, "/org/freedesktop/systemd1", "org.freedesktop.systemd1", "org.freedesktop.systemd1.Manager", ReloadResolved)
	testkit.Equal(t, "systemd-resolved.service replace", <-s.calls)
}

func TestReloadWithoutABus(t *testing.T) {
	testkit.Fails(t, ReloadResolved(t.Context(), t.TempDir()), "connecting to D-Bus")
}
