package golden

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// externalCases are the folders of external: the files of a cluster, the flags for
// vipgen external-lb, and what comes out:
//
//	plan.txt         vipgen external-lb plan, with the warnings
//	plan.json        the same for programs
//	haproxy/HOST/    the files of each host; in every-host/ what all of them have
//	units/HOST/      the units that come with Ignition and Butane
func externalCases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("external/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no cases", err)
	}
	return dirs
}

// external holds all outputs of vipgen external-lb for a case.
type external struct {
	expected        files
	ignition        files
	haproxy, butane files
}

func runExternal(t *testing.T, dir string) external {
	t.Helper()
	args := func(command string, more ...string) []string {
		all := append([]string{"external-lb", command, filepath.Join(dir, "install-config.yaml")}, more...)
		if flags := filepath.Join(dir, "flags"); exists(t, flags) {
			all = append(all, readFlags(t, flags)...)
		}
		return all
	}
	written := func(more ...string) files {
		to := t.TempDir()
		vipgen(t, args("render", append(more, "--dir", to)...)...)
		return readTree(t, to)
	}
	plan, report := vipgen(t, args("plan")...)
	program, _ := vipgen(t, args("plan", "-o", "json")...)
	r := external{expected: files{
		"plan.txt":  bytes.ReplaceAll(append(report, plan...), []byte(dir+"/"), nil),
		"plan.json": program,
	}}
	r.haproxy = written().below("files")
	for p, data := range r.haproxy {
		r.expected["haproxy/"+p] = data
	}
	r.ignition, r.butane = written("--format", "ignition").below("ignition"), written("--format", "butane").below("butane")
	for name, data := range r.ignition {
		for _, u := range decodeData(t, name, data).Units {
			r.expected[path.Join("units", strings.TrimSuffix(name, ".ign"), u.Name)] = []byte(u.Contents)
		}
	}
	for _, form := range []string{"haproxy", "units"} {
		foldHosts(r.expected, form)
	}
	return r
}

// foldHosts keeps a file that all hosts share once.
func foldHosts(f files, form string) {
	versions := map[string][]string{}
	for p := range f.below(form) {
		host, file, _ := strings.Cut(p, "/")
		versions[file] = append(versions[file], path.Join(form, host, file))
	}
	for file, paths := range versions {
		data := f[paths[0]]
		if slices.ContainsFunc(paths, func(p string) bool { return !bytes.Equal(f[p], data) }) {
			continue
		}
		for _, p := range paths {
			delete(f, p)
		}
		f[path.Join(form, "every-host", file)] = data
	}
}

// TestExternal renders the files of external load balancers, and compares them with the
// expected ones.
func TestExternal(t *testing.T) {
	for _, dir := range externalCases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := runExternal(t, dir).expected
			to := filepath.Join(dir, "expected")
			if *update {
				writeTree(t, to, got)
			}
			testkit.Equal(t, asText(readTree(t, to)), asText(got))
			testkit.Equal(t, asText(got), asText(runExternal(t, dir).expected))
		})
	}
}

func asText(f files) map[string]string {
	out := map[string]string{}
	for p, data := range f {
		out[p] = string(data)
	}
	return out
}

// TestExternalDaemons has the real programs parse the expected files.
func TestExternalDaemons(t *testing.T) {
	for _, dir := range externalCases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			r := runExternal(t, dir)
			read := 0
			for p, data := range r.expected {
				check := map[string]func(testing.TB, []byte){"haproxy.cfg": daemon.HAProxy, "keepalived.conf": daemon.Keepalived}[path.Base(p)]
				if check != nil {
					read++
					check(t, data)
				}
			}
			if read == 0 {
				t.Error("nothing was read")
			}
			for name, config := range r.ignition {
				checkExternalIgnition(t, r, strings.TrimSuffix(name, ".ign"), config)
			}
		})
	}
}

// checkExternalIgnition: the real Ignition writes the files of the other formats, except for
// HAProxy's user, and the units; Butane translates to the same Ignition config.
func checkExternalIgnition(t *testing.T, r external, host string, config []byte) {
	t.Helper()
	root := daemon.Ignition(t, config)
	got := readTree(t, root)
	want := files{}
	enabled := ""
	for p, data := range r.haproxy.below(host) {
		want[p] = bytes.Replace(data, []byte("    user haproxy\n    group haproxy\n"), nil, 1)
	}
	for _, u := range decodeData(t, host+".ign", config).Units {
		want["etc/systemd/system/"+u.Name] = []byte(u.Contents)
		enabled += fmt.Sprintf("enable %s\n", u.Name)
	}
	want["etc/systemd/system-preset/20-ignition.preset"] = []byte(enabled)
	testkit.Equal(testkit.In(t, host), asText(want), asText(got))
	data, report, err := butane.TranslateBytes(r.butane[host+".bu"], common.TranslateBytesOptions{})
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("%s: Butane: %v\n%s", host, err, report.String())
	}
	same(t, host, plain(decodeData(t, host+".ign", data)), plain(decodeData(t, host+".ign", config)))
}

// TestExternalUnits has systemd verify the units.
func TestExternalUnits(t *testing.T) {
	analyze := testkit.Program(t, "systemd-analyze")
	for _, dir := range externalCases(t) {
		var units []string
		to := t.TempDir()
		for p, data := range runExternal(t, dir).expected.below("units") {
			// systemd requires the units' programs to exist; the test does not need podman.
			data = bytes.ReplaceAll(data, []byte("/usr/bin/podman"), []byte("/bin/true"))
			file := filepath.Join(to, strings.ReplaceAll(p, "/", "-"))
			testkit.WriteFile(t, file, data)
			units = append(units, file)
		}
		out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte(to)) {
			t.Errorf("%s: %v\n%s", dir, err, out)
		}
	}
}

// TestMetalLB runs `vipgen metallb` on every case of the folder metallb: command is the command
// line, expected the output. lab/e2e/metallb tests the output with MetalLB.
func TestMetalLB(t *testing.T) {
	commands, err := filepath.Glob("metallb/*/command")
	if err != nil || len(commands) < 10 {
		t.Fatalf("%d cases, %v", len(commands), err)
	}
	for _, command := range commands {
		dir := filepath.Dir(command)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := append([]string{"metallb"}, readFlags(t, command)...)
			objects, report := vipgen(t, args...)
			certificate, _ := vipgen(t, append(args, "--certificate")...)
			got := files{"objects.yaml": objects, "certificate.yaml": certificate}
			if len(report) > 0 {
				got["report.txt"] = report
			}
			checkMetalLBFiles(t, filepath.Join(dir, "expected"), got)
			checkForwards(t, objects)
			if bytes.Contains(certificate, []byte("\nkind: APIServer")) {
				var server configv1.APIServer
				testkit.Check(t, yaml.UnmarshalStrict(certificate, &server))
			}
		})
	}
}

func checkMetalLBFiles(t *testing.T, dir string, got files) {
	t.Helper()
	if *update {
		testkit.Must(t, os.RemoveAll(dir))
		writeTree(t, dir, got)
	}
	testkit.Equal(t, readTree(t, dir), got)
}

// checkForwards: the Service's endpoints are those that Kubernetes derives.
func checkForwards(t *testing.T, stream []byte) {
	t.Helper()
	var service corev1.Service
	var slicesOf []discoveryv1.EndpointSlice
	for _, document := range bytes.Split(stream, []byte("---\n"))[1:] {
		var kind struct{ Kind string }
		var err error
		testkit.Must(t, yaml.Unmarshal(document, &kind))
		switch kind.Kind {
		case "Service":
			err = yaml.UnmarshalStrict(document, &service)
		case "EndpointSlice":
			slicesOf = append(slicesOf, discoveryv1.EndpointSlice{})
			err = yaml.UnmarshalStrict(document, &slicesOf[len(slicesOf)-1])
		}
		testkit.Check(testkit.In(t, kind.Kind), err)
	}
	port := service.Spec.Ports[0]
	for _, s := range slicesOf {
		if s.Labels[discoveryv1.LabelServiceName] != service.Name || s.Namespace != service.Namespace {
			t.Errorf("slice %s is for %q", s.Name, s.Labels[discoveryv1.LabelServiceName])
		}
		if *s.Ports[0].Name != port.Name || *s.Ports[0].Port != port.TargetPort.IntVal || *s.Ports[0].Protocol != port.Protocol || len(s.Endpoints) == 0 {
			t.Errorf("slice %s has %+v and %d endpoints, the Service %+v", s.Name, s.Ports[0], len(s.Endpoints), port)
		}
		if !slices.Contains(service.Spec.IPFamilies, corev1.IPFamily(s.AddressType)) {
			t.Errorf("slice %s is of %s, the Service of %s", s.Name, s.AddressType, service.Spec.IPFamilies)
		}
	}
	switch {
	case len(service.Spec.Selector) > 0:
		if len(slicesOf) > 0 {
			t.Error("a selector, and a list as well")
		}
	case len(slicesOf) != len(service.Spec.IPFamilies):
		t.Errorf("%d slices for %s", len(slicesOf), service.Spec.IPFamilies)
	}
}
