package container

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/host"
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

func TestRunUnit(t *testing.T) {
	h, err := host.New(daemon.AddNode(t, daemon.NewNetwork(t), "node-0"), t.TempDir())
	testkit.Must(t, err)
	testkit.Cleanup(t, h.Close)
	images := map[string]Image{"debian": {Distribution: true}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := func(args string) (string, error) {
		t.Helper()
		text := "[Service]\nType=oneshot\nRuntimeDirectory=made\nExecStart=/usr/bin/podman run --rm --net=host " + args + "\nExecStart=/usr/bin/systemctl daemon-reload\n"
		testkit.Must(t, h.Write(host.UnitDir+"/test.service", []byte(text)))
		return RunUnit(ctx, h, images, "test.service")
	}
	out, err := run("--user 0:0 --volume /run/made:/here --entrypoint /usr/bin/touch debian /here/file")
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := h.Read("/run/made/file"); err != nil {
		t.Error(err)
	}
	out, err = run("--volume /run/made:/here --entrypoint /usr/bin/touch debian /here/other")
	if err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("the image's own user: %v: %s", err, out)
	}
	out, err = run("--user 0:0 --volume /run/made:/here:ro --entrypoint /usr/bin/touch debian /here/other")
	if err == nil || !strings.Contains(out, "Read-only file system") {
		t.Errorf("a volume that is read-only: %v: %s", err, out)
	}
	if out, err = run("--entrypoint /usr/bin/hostname debian"); err != nil || !slices.Equal(strings.Fields(out), []string{"node-0"}) {
		t.Errorf("hostname: %v: %s", err, out)
	}
	if _, err = run("--volume /nothing:/here --entrypoint /usr/bin/true debian"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a volume that is missing: %v", err)
	}
	if _, err = run("--entrypoint /x other"); err == nil || !strings.Contains(err.Error(), `no image "other"`) {
		t.Errorf("an image that is missing: %v", err)
	}
}
