package resolvconf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// usesResolved says whether /etc/resolv.conf is a link to one of the files with
// which systemd-resolved points programs to itself.
func usesResolved(root string) bool {
	target, err := os.Readlink(filepath.Join(root, Target))
	if err != nil {
		return false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(Target), target)
	}
	// The link is of the host: it is not followed from inside a container.
	target = filepath.Clean(target)
	return strings.HasPrefix(target, "/run/systemd/resolve/") || strings.HasPrefix(target, "/usr/lib/systemd/")
}

// systemBus is D-Bus's, on the host.
const systemBus = "/run/dbus/system_bus_socket"

// ReloadResolved asks systemd, on the D-Bus of the host under root, to make
// systemd-resolved read its configuration. systemd knows what that takes: a
// reload from 256 on, a restart before. (A SIGHUP would not do: before 256 it
// ends systemd-resolved, which then counts as failed.)
func ReloadResolved(ctx context.Context, root string) error {
	// The caller must be root: that is how systemd knows it on the bus.
	conn, err := dbus.Connect("unix:path="+dbus.EscapeBusAddressValue(filepath.Join(root, systemBus)), dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("reloading systemd-resolved: connecting to D-Bus: %w", err)
	}
	defer conn.Close()
	var job dbus.ObjectPath
	err = conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.ReloadOrRestartUnit", 0, "systemd-resolved.service", "replace").
		Store(&job)
	if err != nil {
		return fmt.Errorf("reloading systemd-resolved: %w", err)
	}
	return nil
}
