package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
)

// Names of a node's services that are not pods.
const (
	apiServer           = "api-server"
	machineConfigServer = "machine-config-server"
	// routerService is the router of the default ingress controller; for others, a hyphen and the
	// controller's name follow.
	routerService = "router"
)

// defaultController is the ingress controller that every cluster has.
const defaultController = "default"

// service is a part of a node that can be stopped and started on its own.
type service struct {
	name    string
	running func() bool
	stop    func(context.Context) error
	start   func(context.Context) error
}

// serviceList returns the node's services: its pods, then the others.
func (n *Node) serviceList() (out []service) {
	names := append(podsIn(n.Path(v1alpha1.ManifestDir)), podsIn(n.Path(v1alpha1.DisabledManifestDir))...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out = append(out, service{
			name:    name,
			running: func() bool { return slices.Contains(podsIn(n.Path(v1alpha1.ManifestDir)), name) },
			stop: func(ctx context.Context) error {
				_, err := n.RemovePod(ctx, name)
				return err
			},
			start: func(context.Context) error { return n.restorePod(name) },
		})
	}
	if n.API != nil {
		stop := n.API.Stop
		if n.Role == v1alpha1.RoleBootstrap {
			stop = n.cluster.EndBootstrap // ends its API server, too
		}
		out = append(out, service{
			name: apiServer, running: n.API.Running, stop: stop,
			start: func(ctx context.Context) error { return errors.Join(n.API.Launch(), n.API.AwaitReady(ctx)) },
		})
	}
	if m := n.MachineConfig; m != nil {
		out = append(out, service{
			name: machineConfigServer, running: m.Running,
			stop:  func(context.Context) error { return m.Close() },
			start: func(context.Context) error { return m.Start() },
		})
	}
	for _, controller := range n.controllers() {
		out = append(out, service{
			name:    strings.TrimSuffix(routerService+"-"+controller, "-"+defaultController),
			running: n.Router(controller).Running,
			stop:    func(ctx context.Context) error { return n.stopRouter(ctx, controller) },
			start:   func(ctx context.Context) error { return n.startRouter(ctx, controller) },
		})
	}
	return out
}

// podsIn returns the names of the pods whose manifests are in a directory.
func podsIn(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
	return lists.Map(files, func(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") })
}

// Services returns the names of the node's services: its pods, apiServer, machineConfigServer and
// its routers.
func (n *Node) Services() []string {
	return lists.Map(n.serviceList(), func(s service) string { return s.name })
}

// Stopped returns the services that do not run; all of them while the power is off.
func (n *Node) Stopped() (names []string) {
	on := n.On()
	for _, s := range n.serviceList() {
		if !on || !s.running() {
			names = append(names, s.name)
		}
	}
	return names
}

func (n *Node) service(name string) (service, error) {
	if !n.On() {
		return service{}, fmt.Errorf("%s is off", n.Name)
	}
	for _, s := range n.serviceList() {
		if s.name == name {
			return s, nil
		}
	}
	return service{}, fmt.Errorf("%s has no service %q; it has %s", n.Name, name, strings.Join(n.Services(), ", "))
}

// StopService shuts down a service gracefully and returns when it has ended. It stays stopped until
// StartService or Heal.
func (n *Node) StopService(ctx context.Context, name string) error {
	s, err := n.service(name)
	if err != nil {
		return err
	}
	if !s.running() {
		return fmt.Errorf("%s is already stopped on %s", name, n.Name)
	}
	return s.stop(ctx)
}

// StartService starts a stopped service.
func (n *Node) StartService(ctx context.Context, name string) error {
	s, err := n.service(name)
	if err != nil {
		return err
	}
	if s.running() {
		return fmt.Errorf("%s is already running on %s", name, n.Name)
	}
	return s.start(ctx)
}

// stopRouter stops a router and sets its pod not ready.
func (n *Node) stopRouter(ctx context.Context, controller string) error {
	n.Router(controller).Stop()
	return known(n.RouterReady(ctx, controller, false))
}

func (n *Node) startRouter(ctx context.Context, controller string) error {
	if err := n.Router(controller).Start(); err != nil {
		return err
	}
	return known(n.RouterReady(ctx, controller, true))
}

// known returns err, or nil if it only means that no API server runs, to which the change could not
// be reported.
func known(err error) error {
	if errors.Is(err, kubeapi.ErrNoServer) {
		return nil
	}
	return err
}
