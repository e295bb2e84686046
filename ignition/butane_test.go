package ignition

import (
	"strings"
	"testing"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// translateButane runs the real Butane on its own format.
func translateButane(t *testing.T, in []byte, raw bool) []byte {
	t.Helper()
	var o common.TranslateBytesOptions
	o.NoResourceAutoCompression, o.Raw = true, raw
	out, r, err := butane.TranslateBytes(in, o)
	if err != nil || len(r.Entries) > 0 {
		t.Fatalf("butane: %v %s in\n%s", err, r, in)
	}
	return out
}

func TestButaneGivesTheSame(t *testing.T) {
	for _, s := range supported {
		t.Run(s.String(), func(t *testing.T) {
			e := NewEncoder(s.Target)
			meta := sampleMetadata()
			meta.Annotations = nil
			in, err := e.Butane(sample(), meta)
			testkit.Must(t, err)
			want, err := e.Ignition(sample())
			if s.Variant == OpenShift {
				want, err = e.MachineConfig(sample(), meta)
			}
			testkit.Must(t, err)
			testkit.Equal(t, fromYAML(t, want), fromYAML(t, translateButane(t, in, false)))
		})
	}
}

func fromYAML(t *testing.T, text []byte) (v any) {
	t.Helper()
	testkit.Must(testkit.In(t, string(text)), yaml.Unmarshal(text, &v))
	return v
}

// FuzzEncode compares all formats with a translation of the whole by Butane, with contents that
// are difficult for YAML.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "\n", " a\n", "\n a\n  b", "a: b # c", "\t\ttab\n", "a\r\nb", "x\n\n\n", "  \n", "- a\n  b \n", "\u2028x\ny", "\ufeffa\nb", "\x00\xff", "---\na\n...\n", "yes", "0644", "a\u0085b\nc", "\n\n  x\n y"} {
		f.Add("/etc/a", []byte(s), "[Unit]\n#"+s+"\n")
		f.Add("/etc/"+s, []byte(s), s)
	}
	e, meta := NewEncoder(Target{OpenShift, "4.16"}), Metadata{Name: "99-a"}
	f.Fuzz(func(t *testing.T, path string, contents []byte, unit string) {
		b := Bundle{Role: "a", Files: []File{{path, 0o644, contents}}, Units: []Unit{{Name: "a.service", Contents: unit, Dropins: []Dropin{{"a.conf", unit}}}}}
		ign, err := e.Ignition(b)
		if err != nil {
			return
		}
		mustValidate(t, ign)
		want := wholeTranslation(t, e.target, b)
		testkit.Equal(t, want, decoded(t, ign))
		mc, err := e.MachineConfig(b, meta)
		testkit.Must(t, err)
		config := fromYAML(t, mc).(map[string]any)["spec"].(map[string]any)["config"]
		testkit.Equal(testkit.In(t, string(mc)), any(want), config)
		bu, err := e.Butane(b, meta)
		testkit.Must(t, err)
		// As JSON: Butane's YAML is wrong for some of these.
		testkit.Equal(testkit.In(t, string(bu)), want, decoded(t, translateButane(t, bu, true)))
		if strings.Count(string(mc), "\n---\n") > 0 {
			t.Errorf("more than one document:\n%s", mc)
		}
	})
}
