package ignition

import (
	"encoding/json"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config"

	"github.com/vipgen/vipgen/internal/testkit"
)

// sample is a bundle with one of each: text, binary, empty, odd paths, units
// with and without contents, enablement and drop-ins.
func sample() Bundle {
	yes, no := true, false
	return Bundle{
		Role: "master",
		Files: []File{
			{"/etc/a", 0o644, []byte("plain")},
			{"/etc/binary", 0o600, []byte{0, 1, 0xff, 0xfe, '\n'}},
			{"/etc/empty", 0o644, nil},
			{"/etc/it is: #odd' \"source\": data:,", 0o644, []byte("data:,")},
			{"/etc/kubernetes/manifests/pod.yaml", 0o644, []byte(strings.Repeat("  - name: \"x\"\n", 50))},
			{"/etc/spaces\nsource: data:,", 0o755, []byte("a b\tc\r\n  d")},
			{"/usr/local/bin/tool", 0o755, []byte("#!/bin/true\n")},
		},
		Units: []Unit{
			{Name: "a.service", Enabled: &yes, Contents: "[Unit]\nDescription=A: #1\n\n[Service]\nExecStart=/bin/true \\\n  x\n\n[Install]\nWantedBy=multi-user.target\n"},
			{Name: "b.service", Enabled: &no, Contents: "[Service]\nExecStart=/bin/false"},
			{Name: "kubelet.service", Dropins: []Dropin{{"10-a.conf", "[Service]\nEnvironment=\"A=b c\"\n"}, {"20-b.conf", "[Unit]\n"}}},
		},
	}
}

func sampleMetadata() Metadata {
	return Metadata{Name: "99-master-vipgen", Labels: map[string]string{"a": "yes"}, Annotations: map[string]string{"vipgen.io/version": "1.0", "b": "x: y\nz"}}
}

func TestIgnitionEqualsWholeTranslation(t *testing.T) {
	for _, s := range supported {
		t.Run(s.String(), func(t *testing.T) {
			e := NewEncoder(s.Target)
			for _, b := range []Bundle{sample(), {Role: "worker"}, {Role: "worker", Units: sample().Units}, {Role: "worker", Files: sample().Files[:1]}, sample()} {
				got, err := e.Ignition(b)
				testkit.Must(t, err)
				testkit.Equal(t, wholeTranslation(t, s.Target, b), decoded(t, got))
				mustValidate(t, got)
				var indented strings.Builder
				enc := json.NewEncoder(&indented)
				enc.SetIndent("", "  ")
				if err := enc.Encode(json.RawMessage(got)); err != nil || indented.String() != string(got) {
					t.Errorf("not indented as JSON is (%v):\n%s", err, got)
				}
			}
		})
	}
}

func TestEncoderRefuses(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name   string
		target Target
		bundle Bundle
		meta   Metadata
		want   string
	}{
		{"file twice", Target{OpenShift, "4.12"}, Bundle{Files: []File{{Path: "/a"}, {Path: "/b"}, {Path: "/a"}}}, Metadata{}, "file /a twice"},
		{"unit twice", Target{OpenShift, "4.12"}, Bundle{Units: []Unit{{Name: "a.service"}, {Name: "a.service"}}}, Metadata{}, "unit a.service twice"},
		{"drop-in twice", Target{OpenShift, "4.12"}, Bundle{Units: []Unit{{Name: "a.service", Dropins: []Dropin{{"a.conf", "[Unit]"}, {"a.conf", "[Unit]"}}}}}, Metadata{}, "duplicate entry"},
		{"file is a unit", Target{OpenShift, "4.12"}, Bundle{Files: []File{{Path: "/etc/systemd/system/a.service"}}, Units: []Unit{{Name: "a.service", Contents: "[Unit]"}}}, Metadata{}, "both a file and a unit"},
		{"file is a drop-in", Target{OpenShift, "4.12"}, Bundle{Files: []File{{Path: "/etc/systemd/system/a.service.d/a.conf"}}, Units: []Unit{{Name: "a.service", Dropins: []Dropin{{"a.conf", "[Unit]"}}}}}, Metadata{}, "both a file and a unit"},
		{"relative path", Target{OpenShift, "4.22"}, Bundle{Files: []File{{Path: "a"}}}, Metadata{}, "path not absolute"},
		{"unclean path", Target{FCOS, "1.7"}, Bundle{Files: []File{{Path: "/a/../b"}}}, Metadata{}, "path is not fully simplified"},
		{"path that is not text", Target{FCOS, "1.7"}, Bundle{Files: []File{{Path: "/\xff"}}}, Metadata{}, "not UTF-8"},
		{"unit that is not text", Target{FCOS, "1.7"}, Bundle{Units: []Unit{{Name: "a.service", Contents: "\xff"}}}, Metadata{}, "not UTF-8"},
		{"special mode", Target{OpenShift, "4.12"}, Bundle{Files: []File{{Path: "/a", Mode: 0o4755}}}, Metadata{}, "special mode bits"},
		{"unit without suffix", Target{OpenShift, "4.12"}, Bundle{Units: []Unit{{Name: "a"}}}, Metadata{}, "invalid systemd unit extension"},
		{"unit with syntax error", Target{Flatcar, "1.1"}, Bundle{Units: []Unit{{Name: "a.service", Contents: "[Unit"}}}, Metadata{}, "invalid unit content"},
		{"enabled without install section", Target{OpenShift, "4.12"}, Bundle{Units: []Unit{{Name: "a.service", Enabled: &yes, Contents: "[Unit]\n"}}}, Metadata{}, "unit a.service contents: unit"},
		{"unknown target", Target{OpenShift, "4.11"}, Bundle{}, Metadata{}, "unknown target openshift 4.11"},
	} {
		out, err := NewEncoder(tt.target).Ignition(tt.bundle)
		testkit.Fails(testkit.In(t, tt.name), err, tt.want)
		testkit.Empty(testkit.In(t, tt.name), out)
	}
	e := NewEncoder(Target{OpenShift, "4.12"})
	for name, meta := range map[string]Metadata{"name": {Labels: map[string]string{roleLabel: "a"}}, "role": {Name: "a"}} {
		if _, err := e.MachineConfig(Bundle{}, meta); err == nil {
			t.Errorf("MachineConfig without %s", name)
		}
	}
	_, err := NewEncoder(Target{FCOS, "1.7"}).MachineConfig(sample(), sampleMetadata())
	testkit.Fails(testkit.In(t, "MachineConfig for fcos"), err, "")
}

// wholeTranslation returns the bundle translated by Butane in one step.
func wholeTranslation(t *testing.T, target Target, b Bundle) map[string]any {
	t.Helper()
	config, err := NewEncoder(target).Butane(b, Metadata{Name: "99-a", Labels: map[string]string{roleLabel: "a"}})
	testkit.Must(t, err)
	return decoded(t, translateButane(t, config, true))
}

func decoded(t *testing.T, raw []byte) (v map[string]any) {
	t.Helper()
	testkit.Must(testkit.In(t, string(raw)), json.Unmarshal(raw, &v))
	return v
}

// mustValidate fails the test unless Ignition's parser accepts the config without a warning.
func mustValidate(t *testing.T, raw []byte) {
	t.Helper()
	if _, r, err := ignition.Parse(raw); err != nil || len(r.Entries) > 0 {
		t.Errorf("Ignition reports %v %s about %s", err, r, raw)
	}
}
