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

// RunUnit runs the commands of a host's systemd service of type oneshot, one after another, as
// UnitContainers returns them: those that run the agent with podman before kubelet runs. It returns
// the output of the containers, with an error for a command that fails.
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

// UnitContainers returns the containers for the commands of a service of type oneshot in the host's
// unit file. `podman run` becomes a container, systemd's daemon-reload is skipped, and another
// command is an error. It creates the directories that systemd creates for the service.
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

// service holds the supported settings of a unit.
type service struct {
	commands           [][]string
	runtimeDirectories []string
}

// continued matches the end of a line that continues on the next one.
var continued = regexp.MustCompile(`\\\n\s*`)

// retried matches a command that a shell retries until it succeeds, perhaps with commands around
// it. The lab runs it once: its nodes keep their resolv.conf.
var retried = regexp.MustCompile(`^/bin/sh -c ' *until +(?:.*; +)?(/usr/bin/podman [^;&]*)(?: && [^;]*)?; +do sleep 1; done'$`)

// parseUnit parses a unit file (systemd.unit(5)). Its commands must not have specifiers or
// variables, and quotes only for a shell that retries.
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
