package container

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// podman is a parsed command line of podman (podman-run(1)).
type podman struct {
	volumes []string
	added   []string // capabilities
	image   string
	args    []string
	uid     uint32
	gid     uint32
}

// imageUser is the default user of vipgen's image (docs/install.md).
const imageUser = 65532

// errNotPodman is returned for a command that is not `podman run` on the host's network.
var errNotPodman = errors.New("only podman run --rm --net=host is supported")

func parsePodman(words []string) (podman, error) {
	p := podman{uid: imageUser, gid: imageUser}
	if len(words) < 2 || words[0] != "/usr/bin/podman" || words[1] != "run" {
		return p, fmt.Errorf("%w, not %q", errNotPodman, words)
	}
	var entry string
	var rm, hostNetwork bool
	for i := 2; i < len(words); i++ {
		word := words[i]
		takesValue := word == "--security-opt" || word == "--authfile" || word == "--volume" || word == "--user" || word == "--entrypoint" || word == "--env" || word == "--cap-add"
		if takesValue {
			if i++; i == len(words) {
				return p, fmt.Errorf("podman's %s lacks a value", word)
			}
		}
		switch {
		case word == "--rm":
			rm = true
		case word == "--net=host":
			hostNetwork = true
		case word == "--volume":
			p.volumes = append(p.volumes, words[i])
		case word == "--cap-add":
			p.added = append(p.added, "CAP_"+words[i])
		case word == "--user":
			if n, err := fmt.Sscanf(words[i]+"\n", "%d:%d\n", &p.uid, &p.gid); n != 2 || err != nil {
				return p, fmt.Errorf("podman's --user %s is not supported: expected UID:GID", words[i])
			}
		case word == "--entrypoint":
			entry = words[i]
		case takesValue: // SELinux, registries, environment of the service: not supported by the lab's images
		case strings.HasPrefix(word, "-"):
			return p, fmt.Errorf("podman's %s is not supported", word)
		default:
			p.image, p.args = word, append([]string{entry}, words[i+1:]...)
			if !rm || !hostNetwork || entry == "" {
				return p, fmt.Errorf("%w, with an entry point: %q", errNotPodman, words)
			}
			return p, nil
		}
	}
	return p, fmt.Errorf("podman runs no image: %q", words)
}

// config returns the configuration of the container that podman would run.
func (p podman) config(h *host.Host, images map[string]Image, id string) (Config, error) {
	image, ok := images[p.image]
	if !ok {
		return Config{}, fmt.Errorf("there is no image %q", p.image)
	}
	cfg := Config{ID: id, Image: image, Args: p.args, UID: p.uid, GID: p.gid, Capabilities: append(DefaultCapabilities(), p.added...)}
	for _, v := range p.volumes {
		m, err := volumeMount(h, v)
		if err != nil {
			return Config{}, err
		}
		cfg.Mounts = append(cfg.Mounts, m)
	}
	return cfg, nil
}

// volumeMount parses a volume, HOST:CONTAINER or HOST:CONTAINER:ro. Podman does not create missing
// directories of the host.
func volumeMount(h *host.Host, volume string) (Mount, error) {
	parts := strings.Split(volume, ":")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" {
		return Mount{}, fmt.Errorf("podman's volume %s is not supported", volume)
	}
	source := parts[0]
	// The lab shares the kernel's own files; those of a network are the caller's.
	if !strings.HasPrefix(source, "/proc/") {
		source = h.Path(source)
	}
	if _, err := os.Stat(source); err != nil {
		return Mount{}, err
	}
	return Mount{Source: source, Destination: parts[1], ReadOnly: len(parts) == 3}, nil
}
