package resolvconf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// usesResolved reports whether /etc/resolv.conf is a link to a file with which
// systemd-resolved points programs to itself.
func usesResolved(root string) bool {
	target, err := os.Readlink(filepath.Join(root, resolvConf))
	if err != nil {
		return false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(resolvConf), target)
	}
	// The link belongs to the host: it is not followed from inside a container.
	target = filepath.Clean(target)
	return strings.HasPrefix(target, "/run/systemd/resolve/") || strings.HasPrefix(target, "/usr/lib/systemd/")
}

// systemBus is the host's D-Bus socket.
const systemBus = "/run/dbus/system_bus_socket"

// ReloadResolved makes systemd, on the D-Bus of the host under root, reload
// systemd-resolved's configuration: by a reload from 256 on, a restart before. (SIGHUP
// would end systemd-resolved before 256, as a failure.)
func ReloadResolved(ctx context.Context, root string) error {
	err := call(ctx, root, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager.ReloadOrRestartUnit", "systemd-resolved.service", "replace")
	if err != nil {
		return fmt.Errorf("reloading systemd-resolved: %w", err)
	}
	return nil
}

// reloadDNS is the flag of NetworkManager's Reload (D-Bus interface
// org.freedesktop.NetworkManager) for `nmcli general reload dns-rc`.
const reloadDNS = uint32(2)

// ReloadNetworkManager notifies NetworkManager, on the D-Bus of the host under root, of a
// changed resolv.conf.
func ReloadNetworkManager(ctx context.Context, root string) error {
	err := call(ctx, root, "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager.Reload", reloadDNS)
	if err != nil {
		return fmt.Errorf("reloading the DNS of NetworkManager: %w", err)
	}
	return nil
}

// call calls a method on the D-Bus of the host under root.
func call(ctx context.Context, root, name string, object dbus.ObjectPath, method string, args ...any) error {
	// The caller must be root: services authorize it on the bus.
	conn, err := dbus.Connect("unix:path="+dbus.EscapeBusAddressValue(filepath.Join(root, systemBus)), dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("connecting to D-Bus: %w", err)
	}
	defer conn.Close()
	return conn.Object(name, object).CallWithContext(ctx, method, 0, args...).Err
}
