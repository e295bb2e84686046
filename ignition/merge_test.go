package ignition

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func mergeBundle() Bundle {
	yes := true
	return Bundle{
		Role: "bootstrap", Files: []File{{"/etc/ours", 0o644, []byte("ours\n")}},
		Units: []Unit{{Name: "ours.service", Enabled: &yes, Contents: "[Service]\n\n[Install]\nWantedBy=a.target\n", Dropins: []Dropin{{"10-ours.conf", "[Unit]\n"}}}},
	}
}

const (
	ourFile = `{"contents":{"compression":"","source":"data:,ours%0A"},"mode":420,"overwrite":true,"path":"/etc/ours"}`
	ourUnit = `{"contents":"[Service]\n\n[Install]\nWantedBy=a.target\n","dropins":[{"contents":"[Unit]\n","name":"10-ours.conf"}],"enabled":true,"name":"ours.service"}`
)

// TestMerge compares the decoded configs; want is "" if the base does not change.
func TestMerge(t *testing.T) {
	tests := []struct{ name, base, want string }{
		{"nothing there",
			`{"ignition":{"version":"3.2.0"}}`,
			`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[` + ourUnit + `]}}`},
		{"nulls",
			`{"ignition":{"version":"3.2.0"},"storage":null,"systemd":{"units":null}}`,
			`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[` + ourUnit + `]}}`},
		{"pointer config",
			`{"ignition":{"config":{"merge":[{"source":"https://192.0.2.1:22623/config/master"}]},"security":{"tls":{"certificateAuthorities":[{"source":"data:,ca"}]}},"version":"3.2.0"}}`,
			`{"ignition":{"config":{"merge":[{"source":"https://192.0.2.1:22623/config/master"}]},"security":{"tls":{"certificateAuthorities":[{"source":"data:,ca"}]}},"version":"3.2.0"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[` + ourUnit + `]}}`},
		{"unknown fields and exact numbers",
			`{"ignition":{"version":"3.5.0","new":{"n":12345678901234567890.10}},"storage":{"files":[{"path":"/a<b>&c","extra":1e400}],"luks":[{"name":"r","device":"/dev/x"}]},"future":[1.0]}`,
			`{"ignition":{"version":"3.5.0","new":{"n":12345678901234567890.10}},"storage":{"files":[{"path":"/a<b>&c","extra":1e400},` + ourFile + `],"luks":[{"name":"r","device":"/dev/x"}]},"systemd":{"units":[` + ourUnit + `]},"future":[1.0]}`},
		{"all there", `{ "ignition":{"version":"3.2.0"}, "storage":{"files":[` + ourFile + `]},"systemd":{"units":[` + ourUnit + `]}}`, ""},
		{"there in another encoding",
			`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/ours","contents":{"source":"data:;base64,b3Vycwo="}}]},"systemd":{"units":[` + ourUnit + `]}}`, ""},
		{"unit lacks contents, enablement and drop-in",
			`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[{"name":"ours.service","x":1,"dropins":[{"name":"05-theirs.conf","contents":"[Unit]\n"}]}]}}`,
			`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[{"name":"ours.service","x":1,"contents":"[Service]\n\n[Install]\nWantedBy=a.target\n","enabled":true,"dropins":[{"name":"05-theirs.conf","contents":"[Unit]\n"},{"name":"10-ours.conf","contents":"[Unit]\n"}]}]}}`},
	}
	for _, version := range []string{"3.0.0", "3.1.0", "3.3.0", "3.4.0", "3.6.0"} {
		tests = append(tests, struct{ name, base, want string }{"version " + version,
			`{"ignition":{"version":"` + version + `"}}`,
			`{"ignition":{"version":"` + version + `"},"storage":{"files":[` + ourFile + `]},"systemd":{"units":[` + ourUnit + `]}}`})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range supported {
				enc := NewEncoder(s.Target)
				got, conflicts, err := Merge([]byte(tt.base), mergeBundle(), enc, false)
				if err != nil || len(conflicts) > 0 {
					t.Fatal(err, conflicts)
				}
				if tt.want == "" && string(got) != tt.base {
					t.Errorf("%s: the base changed to %s", s, got)
				}
				if tt.want != "" {
					testkit.Equal(testkit.In(t, s), exact(t, []byte(tt.want)), exact(t, got))
				}
				again, _, err := Merge(got, mergeBundle(), enc, false)
				if err != nil || !bytes.Equal(got, again) {
					t.Errorf("merging twice gives\n%s, not\n%s (%v)", again, got, err)
				}
			}
		})
	}
}

// exact decodes JSON with unchanged numbers.
func exact(t *testing.T, raw []byte) (v map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	testkit.Must(testkit.In(t, string(raw)), dec.Decode(&v))
	return v
}

func TestMergeConflicts(t *testing.T) {
	file := func(rest string) string {
		return `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/ours"` + rest + `}]}}`
	}
	unit := func(rest string) string {
		return `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"ours.service"` + rest + `}]}}`
	}
	tests := []struct {
		name, base string
		want       []Conflict
	}{
		{"contents", file(`,"contents":{"source":"data:,theirs"}`), []Conflict{{"file", "/etc/ours", "its contents differ"}}},
		{"mode", file(`,"mode":384,"contents":{"source":"data:,ours%0A"}`), []Conflict{{"file", "/etc/ours", "mode 0600, not 0644"}}},
		{"owner", file(`,"user":{"id":3},"contents":{"source":"data:,ours%0A"}`), []Conflict{{"file", "/etc/ours", "it belongs to 3:, not to root"}}},
		{"remote, without a host", file(`,"contents":{"source":"s3:a:b"}`), []Conflict{{"file", "/etc/ours", "its contents come from s3:..."}}},
		{"remote", file(`,"contents":{"source":"https://a:b@example.com/x?y"}`), []Conflict{{"file", "/etc/ours", "its contents come from https://example.com/x"}}},
		{"appended", file(`,"contents":{"source":"data:,ours%0A"},"append":[{"source":"data:,x"}]`), []Conflict{{"file", "/etc/ours", "parts are appended to it"}}},
		{"no contents", file(``), []Conflict{{"file", "/etc/ours", "it has no contents"}}},
		{"broken", file(`,"contents":{"source":"data:,x","compression":"gzip"}`), []Conflict{{"file", "/etc/ours", "the contents are not gzip: unexpected EOF"}}},
		{"directory", `{"ignition":{"version":"3.2.0"},"storage":{"directories":[{"path":"/other"},{"path":"/etc/ours"}]}}`, []Conflict{{"directory", "/etc/ours", "a file is to be there"}}},
		{"link", `{"ignition":{"version":"3.2.0"},"storage":{"links":[{"path":"/etc/ours","target":"/x"}]}}`, []Conflict{{"link", "/etc/ours", "a file is to be there"}}},
		{"unit", unit(`,"enabled":false,"mask":true,"contents":"[Unit]\n","dropins":[{"name":"10-ours.conf","contents":"[Service]\n"}]`), []Conflict{
			{"unit", "ours.service", "its contents differ"},
			{"unit", "ours.service", "enabled is false, not true"},
			{"unit", "ours.service", "it is masked"},
			{"dropin", "ours.service/10-ours.conf", "its contents differ"},
		}},
	}
	enc := NewEncoder(Target{OpenShift, "4.12"})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			merged, got, err := Merge([]byte(tt.base), mergeBundle(), enc, false)
			if err != nil || merged != nil {
				t.Fatalf("merged %s, error %v", merged, err)
			}
			testkit.Equal(t, tt.want, got)
			merged, got, err = Merge([]byte(tt.base), mergeBundle(), enc, true)
			testkit.Must(t, err)
			testkit.Equal(t, tt.want, got)
			mustHold(t, merged, mergeBundle())
			again, got, err := Merge(merged, mergeBundle(), enc, false)
			if err != nil || len(got) > 0 || !bytes.Equal(again, merged) {
				t.Errorf("merging again: %v %v\n%s", got, err, again)
			}
		})
	}
}

// mustHold fails the test unless Ignition accepts the config and it contains the whole bundle.
func mustHold(t *testing.T, config []byte, b Bundle) {
	t.Helper()
	testkit.Check(testkit.In(t, config), validate(config))
	docs, err := Decode("x.ign", config)
	if err != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	got := docs[0].Bundle()
	for _, f := range b.Files {
		there := slices.ContainsFunc(got.Files, func(g File) bool { return reflect.DeepEqual(f, g) })
		testkit.Equal(testkit.In(t, "file", f.Path, "is in", config), true, there)
	}
	for _, u := range b.Units {
		i := slices.IndexFunc(got.Units, func(g Unit) bool { return g.Name == u.Name })
		if i < 0 {
			t.Fatalf("unit %s is not in %s", u.Name, config)
		}
		g := got.Units[i]
		if g.Contents != u.Contents || g.Enabled == nil || *g.Enabled != *u.Enabled {
			t.Errorf("unit %s differs in %s", u.Name, config)
		}
		for _, d := range u.Dropins {
			if !slices.Contains(g.Dropins, d) {
				t.Errorf("drop-in %s is not in %s", d.Name, config)
			}
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, base, want string }{
		{"nothing", ``, "not JSON"},
		{"YAML", "ignition:\n", "not JSON"},
		{"Ignition 2", `{"ignition":{"version":"2.2.0"}}`, `Ignition version "2.2.0": only 3.x can be merged`},
		{"no version", `{"ignition":{}}`, "only 3.x"},
		{"Ignition of the future", `{"ignition":{"version":"3.99.0"}}`, "unsupported config version"},
		{"invalid base", `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"relative"}]}}`, "path not absolute"},
		{"path twice", `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}`, "duplicate entry"},
		{"key twice", `{"ignition":{"version":"3.2.0"},"storage":{"files":[]},"storage":{"links":[]}}`, `key "storage" twice`},
		{"key in other letters", `{"ignition":{"version":"3.2.0"},"Storage":{}}`, `key "Storage" should be "storage"`},
		{"file where the unit is written", `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/systemd/system/ours.service"}]}}`, "merged config would not be valid"},
	} {
		merged, _, err := Merge([]byte(tt.base), mergeBundle(), NewEncoder(Target{OpenShift, "4.12"}), true)
		testkit.Fails(testkit.In(t, tt.name), err, tt.want)
		testkit.Empty(testkit.In(t, tt.name), merged)
	}
	twice := Bundle{Files: []File{{Path: "/a"}, {Path: "/a"}}}
	_, _, err := Merge([]byte(`{"ignition":{"version":"3.2.0"}}`), twice, NewEncoder(Target{OpenShift, "4.12"}), false)
	testkit.Fails(testkit.In(t, "a bundle with a file twice"), err, "")
}

func FuzzMerge(f *testing.F) {
	boot := testkit.ReadFile(f, filepath.Join("testdata", "bootstrap-valid.ign"))
	f.Add(boot)
	for _, s := range []string{
		`{"ignition":{"version":"3.2.0"}}`,
		`{"ignition":{"version":"3.0.0"},"storage":{"files":[` + ourFile + `],"links":[{"path":"/etc/ours2","target":"/"}]}}`,
		`{"ignition":{"version":"3.6.0"},"systemd":{"units":[{"name":"ours.service","mask":true,"dropins":null}]},"x":[1.50]}`,
	} {
		f.Add([]byte(s))
	}
	enc := NewEncoder(Target{OpenShift, "4.12"})
	f.Fuzz(func(t *testing.T, base []byte) {
		merged, conflicts, err := Merge(base, mergeBundle(), enc, false)
		if err != nil {
			return
		}
		if len(conflicts) == 0 {
			mustKeep(t, exact(t, base), exact(t, merged))
		} else if merged != nil {
			t.Error("merged in spite of conflicts")
		}
		if merged, _, err = Merge(base, mergeBundle(), enc, true); err != nil {
			return
		}
		mustHold(t, merged, mergeBundle())
		again, conflicts, err := Merge(merged, mergeBundle(), enc, false)
		if err != nil || len(conflicts) > 0 || !bytes.Equal(again, merged) {
			t.Errorf("merging again: %v %v\n%s\n%s", conflicts, err, merged, again)
		}
	})
}

// mustKeep fails the test unless merged contains everything in base: every field, and every
// element of a list at its position.
func mustKeep(t *testing.T, base, merged any) {
	t.Helper()
	switch base := base.(type) {
	case nil: // equivalent to none
	case map[string]any:
		m, ok := merged.(map[string]any)
		if !ok {
			t.Fatalf("%v became %v", base, merged)
		}
		for k := range base {
			mustKeep(t, base[k], m[k])
		}
	case []any:
		m, ok := merged.([]any)
		if !ok || len(m) < len(base) {
			t.Fatalf("%v became %v", base, merged)
		}
		for i := range base {
			mustKeep(t, base[i], m[i])
		}
	default:
		if s, ok := base.(string); base != merged && !(ok && s == "") {
			t.Fatalf("%v became %v", base, merged)
		}
	}
}

// A unit or drop-in that the base lacks does not stop later ones from being merged.
func TestMergeSeveralUnits(t *testing.T) {
	b := mergeBundle()
	later := b.Units[0]
	later.Name = "z-ours.service"
	later.Dropins = append([]Dropin{{Name: "05-first.conf", Contents: "[Unit]\n"}}, later.Dropins...)
	b.Units = append(b.Units, later)
	base := `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"z-ours.service","dropins":[{"name":"10-ours.conf","contents":"[Service]\n"}]}]}}`
	got, conflicts, err := Merge([]byte(base), b, NewEncoder(supported[0].Target), true)
	if err != nil || len(conflicts) != 1 {
		t.Fatal(err, conflicts)
	}
	testkit.Contains(t, string(got), `"name":"ours.service"`, `{"contents":"[Unit]\n","name":"05-first.conf"}`, `{"contents":"[Unit]\n","name":"10-ours.conf"}`)
}
