package pod

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/lab/testbed/container"
)

// Prepare creates the volumes of a manifest's pod as Run does, runs its init containers, and
// returns the configuration of one of its containers, for callers that start, change, stop and
// probe it without kubelet. The caller sets the log files. The manifest is not one of Run's.
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
