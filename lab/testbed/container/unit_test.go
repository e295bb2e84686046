package container

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/unit"
)

func TestParsePodman(t *testing.T) {
	for in, want := range map[string]string{
		"/usr/bin/podman run --rm --net=host --entrypoint /a image b":                        "",
		"/usr/bin/podman run --rm --net=host --volume /x:/y:ro --entrypoint /a image --help": "",
		"/usr/bin/podman run --rm --net=host --user 0:0 --entrypoint /a image b":             "",
		"/usr/bin/podman run --rm --net=host --user root --entrypoint /a image":              "expected UID:GID",
		"/usr/bin/podman pull image":                                             "only podman run",
		"/usr/bin/podman run --net=host --entrypoint /a image":                   "only podman run --rm --net=host",
		"/usr/bin/podman run --rm --net=host image":                              "with an entry point",
		"/usr/bin/podman run --rm --net=host --privileged --entrypoint /a image": "--privileged is not supported",
		"/usr/bin/podman run --rm --net=host --volume":                           "--volume lacks a value",
		"/usr/bin/podman run --rm --net=host":                                    "no image",
	} {
		p, err := parsePodman(strings.Fields(in))
		if want == "" && (err != nil || p.image != "image" || p.args[0] != "/a" || len(p.args) != 2) {
			t.Errorf("%s: %+v, %v", in, p, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// The units that vipgen renders can be parsed.
func TestParseRenderedUnits(t *testing.T) {
	units, err := unit.Render(unit.Params{AgentImage: "registry.example.com/agent:1", AuthFile: "/var/lib/kubelet/config.json"})
	testkit.Must(t, err)
	for _, u := range units {
		if !strings.HasSuffix(u.Name, ".service") {
			continue
		}
		s, err := parseUnit(u.Contents)
		testkit.Must(t, err)
		if len(s.commands) == 0 {
			t.Fatalf("%s runs nothing", u.Name)
		}
		p, err := parsePodman(s.commands[0])
		if err != nil || p.image != "registry.example.com/agent:1" || len(p.volumes) == 0 {
			t.Errorf("%s: %+v, %v", u.Name, p, err)
		}
	}
	for _, text := range []string{"Type=simple\n", "ExecStart=/bin/sh -c 'x'\n", "ExecStart=/bin/sh -c 'until /usr/bin/podman run $x; do sleep 1; done'\n", "ExecStart=/bin/echo %n\n"} {
		if _, err := parseUnit(text); err == nil {
			t.Errorf("no complaint about %q", text)
		}
	}
}
