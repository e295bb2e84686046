package container

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// RunUnit runs the commands of a host's systemd service of type oneshot, one after another,
// as UnitContainers has them: those that run the agent with podman before there is a kubelet. It returns what the containers printed, with an error for
// the one that fails.
func RunUnit(ctx context.Context, h *host.Host, images map[string]Image, name string) (string, error) {
	configs, err := UnitContainers(h, images, name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, cfg := range configs {
		r, err := Run(ctx, h, cfg)
		out.WriteString(r.Out + r.Err)
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("exit code %d: %s", r.Code, r.Err)
		}
		if err != nil {
			return out.String(), fmt.Errorf("%s on %s: %w", name, h.Name, err)
		}
	}
	return out.String(), nil
}

// UnitContainers says how to run the commands of a service of type oneshot, as they
// stand in the host's unit: `podman run` as a container, and systemd's own
// daemon-reload not at all. Another command is an error. The directories that
// systemd makes for the service are there afterwards.
func UnitContainers(h *host.Host, images map[string]Image, name string) ([]Config, error) {
	text, err := h.Read(host.UnitDir + "/" + name)
	if err != nil {
		return nil, err
	}
	service, err := parseUnit(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, dir := range service.runtimeDirectories {
		if err := h.MkdirAll("/run/" + dir); err != nil {
			return nil, err
		}
	}
	var out []Config
	for i, command := range service.commands {
		if slices.Equal(command, []string{"/usr/bin/systemctl", "daemon-reload"}) {
			continue
		}
		p, err := parsePodman(command)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cfg, err := p.config(h, images, fmt.Sprintf("%s-%d", strings.TrimSuffix(name, filepath.Ext(name)), i))
		if err != nil {
			return nil, fmt.Errorf("%s on %s: %w", name, h.Name, err)
		}
		out = append(out, cfg)
	}
	return out, nil
}

// service is what of a unit matters here.
type service struct {
	commands           [][]string
	runtimeDirectories []string
}

// continued is how a line of a unit file goes on with the next one.
var continued = regexp.MustCompile(`\\\n\s*`)

// retried is a command that a shell tries until it succeeds, perhaps between
// others; the lab tries once, and its nodes have a resolv.conf that stays.
var retried = regexp.MustCompile(`^/bin/sh -c ' *until +(?:.*; +)?(/usr/bin/podman [^;&]*)(?: && [^;]*)?; +do sleep 1; done'$`)

// parseUnit reads a unit file (systemd.unit(5)). Its commands hold no specifiers or
// variables, and quotes only where a shell tries again.
func parseUnit(text string) (service, error) {
	var s service
	for line := range strings.Lines(continued.ReplaceAllString(text, " ")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			if m := retried.FindStringSubmatch(value); m != nil {
				value = m[1]
			}
			if strings.ContainsAny(value, "\"'\\$%") {
				return s, fmt.Errorf("quotes, specifiers and variables are not supported: %s", value)
			}
			s.commands = append(s.commands, strings.Fields(value))
		case "RuntimeDirectory":
			s.runtimeDirectories = strings.Fields(value)
		case "Type":
			if value != "oneshot" {
				return s, fmt.Errorf("a service of type %s is not supported", value)
			}
		}
	}
	return s, nil
}
