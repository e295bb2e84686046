package machine

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	// criNamespace is containerd's namespace of kubelet's containers.
	criNamespace = "k8s.io"
)

//go:embed containerd.toml
var containerdText string

// network is a CNI configuration without plugins: the node is ready, and pods on the host's network
// run. Other pods cannot run.
const network = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}` + "\n"

// StartContainerd starts containerd and returns when it answers. The image holds a pod's namespaces
// and must be imported.
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
	return s, s.await(ctx, s.name, m.askCRI)
}

// askCRI sends containerd kubelet's first request. containerd answers "server is not initialized
// yet" for some milliseconds after it answers ctr.
func (m *Machine) askCRI(ctx context.Context) error {
	dir, err := os.Open(filepath.Dir(m.Path(containerdSocket))) // the path is too long for a socket's
	if err != nil {
		return err
	}
	defer dir.Close()
	socket := fmt.Sprintf("unix:///proc/self/fd/%d/%s", dir.Fd(), filepath.Base(containerdSocket))
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	// All fields of both messages are optional.
	return conn.Invoke(ctx, "/runtime.v1.RuntimeService/Version", &emptypb.Empty{}, &emptypb.Empty{})
}

// ImportImage imports the images of an archive of this machine into containerd, which must run. The
// archive is an OCI layout or from docker save.
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
