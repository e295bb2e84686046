package pod

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/lab/testbed/container"
)

// Prepare makes the volumes of a manifest's pod as Run does, has its init
// containers end well, and says how to run the container of that name, for who
// wants to start, change, end and probe it without kubelet. Its logs are the
// caller's to name. The manifest is not among those that Run runs.
func (k *Kubelet) Prepare(ctx context.Context, manifest []byte, name string) (container.Config, error) {
	if k.BackOff == (BackOff{}) {
		k.BackOff = kubeletBackOff()
	}
	p, err := k.newPod(manifest)
	if err != nil {
		return container.Config{}, err
	}
	if !p.prepare(ctx) || !p.initialize(ctx, ctx) {
		return container.Config{}, ctx.Err()
	}
	for _, c := range p.Containers {
		if c.Name == name {
			cfg := p.config(c.spec, p.places)
			cfg.ID = p.Name + "-" + c.Name
			return cfg, nil
		}
	}
	return container.Config{}, fmt.Errorf("pod %s has no container %s", p.Name, name)
}
