package machine

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	// criNamespace is where containerd has what kubelet runs.
	criNamespace = "k8s.io"
)

//go:embed containerd.toml
var containerdText string

// network is a configuration without plugins in place of the cluster's network: the
// node is ready, and pods on the host's network run. Others cannot.
const network = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}` + "\n"

// StartContainerd starts containerd and returns when it answers. The image, which
// has to be imported, is that of the process that holds a pod's namespaces.
func (m *Machine) StartContainerd(ctx context.Context, sandboxImage string) (*Service, error) {
	err := errors.Join(
		m.Write(containerdConfig, fmt.Appendf(nil, containerdText, sandboxImage)),
		m.Write("/etc/cni/net.d/10-none.conflist", []byte(network)),
	)
	if err != nil {
		return nil, err
	}
	s, err := m.Start("containerd", "--config", containerdConfig)
	if err != nil {
		return nil, err
	}
	return s, s.await(ctx, s.name, func(ctx context.Context) error {
		_, err := m.ctr(ctx, "version")
		return err
	})
}

// ImportImage gives containerd, which runs, the images of an archive of this machine,
// in the form of an OCI layout or of docker save.
func (m *Machine) ImportImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := m.Command(ctx, "ctr", "--namespace", criNamespace, "images", "import", "-")
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("importing %s on %s: %w: %s", archive, m.Name, err, out)
	}
	return nil
}

func (m *Machine) ctr(ctx context.Context, args ...string) (string, error) {
	return m.Output(ctx, "ctr", append([]string{"--namespace", criNamespace}, args...)...)
}
