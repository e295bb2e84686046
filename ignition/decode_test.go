package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/internal/testkit"
)

func gzipped(t testing.TB, contents []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(contents)
	testkit.Must(t, err)
	testkit.Must(t, z.Close())
	return "data:;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	return testkit.ReadFile(t, filepath.Join("testdata", name))
}

func TestDecode(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		file string
		want []Document
	}{
		{"machineconfigs.yaml", []Document{
			{
				Source: "MachineConfig 50-old", Name: "50-old", Role: "worker", IgnitionVersion: "2.2.0",
				Files: []DecodedFile{
					{File: File{"/etc/percent", 0o600, []byte("a b\n")}},
					{File: File{"/etc/base64", 0o644, []byte("hello")}},
				},
				Units: []Unit{
					{Name: "old.service", Enabled: &yes, Contents: "[Unit]\n"},
					{Name: "masked.service"},
				},
				Notes: []string{"unit masked.service is masked"},
			},
			{
				Source: "MachineConfig 99-new", Name: "99-new", Role: "master", IgnitionVersion: "3.2.0",
				Files: []DecodedFile{{File: File{"/etc/octal", 0o644, []byte("x")}}},
				Units: []Unit{{Name: "kubelet.service", Enabled: &no, Dropins: []Dropin{{"10-a.conf", "[Service]\n"}}}}, Notes: []string{"users: core"},
			},
			{
				Source: "MachineConfig 99-kernel", Name: "99-kernel", Role: "infra",
				Notes: []string{"kernel arguments: nosmt quiet", "extensions: usbguard", "FIPS mode", "kernel type: realtime", "operating system image: quay.io/example/os@sha256:aa", "extensions image: quay.io/example/ext@sha256:bb"},
			},
		}},
		{"bootstrap.ign", []Document{{
			Source: "Ignition 3.2.0", Name: "bootstrap", Role: "bootstrap", IgnitionVersion: "3.2.0",
			Files: []DecodedFile{
				{File: File{"/etc/motd", 0o644, []byte("first\n")}, Append: true},
				{File: File{"/etc/both", 0o644, []byte("one\n")}},
				{File: File{"/etc/both", 0o644, []byte("two\n")}, Append: true},
				{File: File{"/opt/remote", 0o755, nil}, Remote: "https://mirror.example.com/tool"},
				{File: File{"/opt/bucket", 0o644, nil}, Remote: "s3://bucket/key"},
				{File: File{"/etc/broken", 0o644, nil}, Problem: "the source is not a valid data URL"},
				{File: File{"/etc/notgzip", 0o644, nil}, Problem: "the contents are not gzip: gzip: invalid header"},
				{File: File{"/etc/xz", 0o644, nil}, Problem: `unknown compression "xz"`},
				{File: File{"/etc/empty", 0o644, nil}},
			},
			Units: []Unit{{Name: "bootkube.service", Enabled: &yes, Contents: "[Service]\n"}},
			Notes: []string{
				"merges https://api-int.example.com:22623/config/master (not fetched)",
				"merges a data URL (not fetched)",
				"is replaced by https://example.com/ (not fetched)",
				"sets a proxy for fetching",
				"certificate authorities for fetching: 1",
				"kernel arguments: a=b",
				"kernel arguments removed: quiet",
				"users: core, admin",
				"groups: wheel",
				"disks: /dev/vda",
				"RAID: md0",
				"LUKS volumes: root",
				"filesystems: /dev/vdb",
				"directory /etc/dir",
				"link /etc/link -> /target",
				"/etc/motd belongs to core:1000",
			},
		}}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			data := readTestdata(t, tt.file)
			got, err := Decode(filepath.Join("some/dir", tt.file), data)
			testkit.Must(t, err)
			testkit.Equal(t, tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Document{}, "Settings", "Annotations", "Spelling"))
			testkit.Lacks(t, fmt.Sprintf("%+v", got), "SECRET")
			if bytes.Count(data, []byte("SECRET")) == 0 {
				t.Error("the test data holds no secret to hide")
			}
		})
	}
}

func TestDecodeForms(t *testing.T) {
	const ign = `{"ignition":{"version":"3.4.0"}}`
	mc := `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"a"},"spec":{"config":` + ign + `}}`
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"json", ign, []string{"Ignition 3.4.0"}},
		{"json stream", ign + "\n" + mc, []string{"Ignition 3.4.0", "MachineConfig a"}},
		{"byte order mark", "\ufeff" + ign + "\n" + mc, []string{"Ignition 3.4.0", "MachineConfig a"}},
		{"List", `{"kind":"List","items":[` + mc + `,{"kind":"Pod"},` + mc + `]}`, []string{"MachineConfig a", "MachineConfig a"}},
		{"MachineConfigList in YAML", "kind: MachineConfigList\nitems:\n- " + mc, []string{"MachineConfig a"}},
		{"list in a list", `{"kind":"List","items":[{"kind":"List","items":[` + mc + `]}]}`, []string{"MachineConfig a"}},
		{"YAML stream", "# first\n---\n" + mc + "\n---\n\n--- " + ign + "\n...\n", []string{"MachineConfig a", "Ignition 3.4.0"}},
		{"directive", "%YAML 1.1\n---\nignition:\n  version: 3.1.0\n", []string{"Ignition 3.1.0"}},
		{"Windows line ends", "ignition:\r\n  version: 3.1.0\r\n---\r\n" + mc, []string{"Ignition 3.1.0", "MachineConfig a"}},
		{"no config", `{"kind":"MachineConfig","metadata":{"name":"a"},"spec":{"config":null}}`, []string{"MachineConfig a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, err := Decode("x.yaml", []byte(tt.in))
			testkit.Must(t, err)
			var got []string
			for _, d := range docs {
				got = append(got, d.Source)
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", "neither a MachineConfig nor"},
		{"another kind", "kind: Pod\n", "neither a MachineConfig nor"},
		{"a number", "3", "neither a MachineConfig nor"},
		{"not YAML", "a: [", "neither YAML nor JSON"},
		{"Ignition 1", `{"ignition":{"version":"1.0.0"}}`, "vipgen reads 2 and 3"},
		{"no version", `{"ignition":{}}`, `version ""`},
		{"Ignition 4 in a MachineConfig", `{"kind":"MachineConfig","metadata":{"name":"a"},"spec":{"config":{"ignition":{"version":"4.0.0"}}}}`, `MachineConfig a: ignition version "4.0.0"`},
		{"wrong type", `{"ignition":{"version":"3.0.0"},"storage":[]}`, "not an Ignition config"},
	} {
		_, err := Decode("x", []byte(tt.in))
		testkit.Fails(testkit.In(t, tt.name), err, tt.want)
	}
}

// TestDecompressionIsBounded decodes one file that is too large and many that are too large in
// total.
func TestDecompressionIsBounded(t *testing.T) {
	config := func(n int, size int) []byte {
		source := gzipped(t, make([]byte, size))
		var files []map[string]any
		for i := range n {
			files = append(files, map[string]any{"path": fmt.Sprint("/", i), "contents": map[string]any{"source": source, "compression": "gzip"}})
		}
		out, err := json.Marshal(map[string]any{"ignition": map[string]any{"version": "3.0.0"}, "storage": map[string]any{"files": files}})
		testkit.Must(t, err)
		return out
	}
	docs, err := Decode("x", config(1, maxFile+1))
	if err != nil || docs[0].Files[0].Problem != "the contents are more than 16 MiB" {
		t.Errorf("one large file: %v, %q", err, docs[0].Files[0].Problem)
	}
	docs, err = Decode("x", config(maxDecoded/maxFile+1, maxFile))
	testkit.Must(t, err)
	for i, f := range docs[0].Files {
		testkit.Equal(testkit.In(t, i, f.Problem), f.Problem == "", i < maxDecoded/maxFile)
	}
	// Refused files were decompressed, too: 300 files of 17 MiB each, in as many documents.
	var before, after runtime.MemStats
	var all Decoder
	large := config(1, maxFile+1<<20)
	runtime.ReadMemStats(&before)
	for i := range 300 {
		if docs, err := all.Decode("x", large); err != nil || docs[0].Files[0].Problem == "" {
			t.Errorf("large file %d: %v", i, err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 600 {
		t.Errorf("300 large files: %d MiB", used)
	}
}

func TestDocumentBundle(t *testing.T) {
	d := Document{
		Role: "master",
		Files: []DecodedFile{
			{File: File{Path: "/b", Contents: []byte("1")}},
			{File: File{Path: "/b", Contents: []byte("2")}, Append: true},
			{File: File{Path: "/a", Contents: []byte("old")}},
			{File: File{Path: "/a", Contents: []byte("new")}},
			{File: File{Path: "/alone"}, Append: true},
			{File: File{Path: "/remote"}, Remote: "https://example.com/"},
			{File: File{Path: "/broken"}, Problem: "broken"},
		},
		Units: []Unit{{Name: "b.service"}, {Name: "a.service"}, {Name: "b.service", Contents: "x"}},
	}
	want := Bundle{Role: "master",
		Files: []File{{Path: "/a", Contents: []byte("new")}, {Path: "/b", Contents: []byte("12")}},
		Units: []Unit{{Name: "a.service"}, {Name: "b.service", Contents: "x"}},
	}
	for range 2 { // the second pass shows that the first changed nothing
		testkit.Equal(t, want, d.Bundle())
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"machineconfigs.yaml", "bootstrap.ign"} {
		data := testkit.ReadFile(f, filepath.Join("testdata", name))
		f.Add(data)
	}
	f.Add([]byte(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","contents":{"source":"` + gzipped(f, []byte("abc")) + `","compression":"gzip"}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := Decode("x.ign", data)
		if err == nil && len(docs) == 0 {
			t.Error("neither documents nor an error")
		}
		for _, d := range docs {
			b := d.Bundle()
			testkit.Check(t, b.Sort())
		}
	})
}

// Everything in a document besides files and units can be compared, secrets without being
// shown.
func TestSettings(t *testing.T) {
	const head = `{"ignition": {"version": "3.2.0"}, "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["SECRET`
	decode := func(text string) map[string]string {
		docs, err := Decode("x.ign", []byte(text))
		testkit.Must(t, err)
		return docs[0].Settings
	}
	a, same, b := decode(head+`1"]}]}}`), decode(strings.ReplaceAll(head, " ", "")+`1"]}]},"storage":{}}`), decode(head+`2"]}]}}`)
	if len(a) != 1 || a[SettingUsers] == "" || strings.Contains(a[SettingUsers], "SECRET") {
		t.Errorf("settings %v", a)
	}
	if a[SettingUsers] != same[SettingUsers] || a[SettingUsers] == b[SettingUsers] {
		t.Errorf("%v, %v, %v: the first two alone are the same", a, same, b)
	}
	docs, err := Decode("all.yaml", readTestdata(t, "machineconfigs.yaml"))
	testkit.Must(t, err)
	want := map[string]string{SettingKernelArguments: "nosmt quiet", SettingExtensions: "usbguard", SettingFIPS: "true", SettingKernelType: "realtime",
		SettingOSImage: "quay.io/example/os@sha256:aa", SettingExtensionsImage: "quay.io/example/ext@sha256:bb"}
	testkit.Equal(t, want, docs[len(docs)-1].Settings)
}

// A spelling has a field for each one that is written, and values only where they are not
// secret.
func TestSpelling(t *testing.T) {
	const config = `{"kind": "MachineConfig", "metadata": {"name": "a"}, "spec": {"config": {"ignition": {"version": "VERSION"},
"storage": {"files": [
  {"path": "/etc/a", "mode": 420, "overwrite": true, "user": {}, "append": [], "group": {"name": null}, "contents": {"source": "data:,SECRET", "compression": "", "httpHeaders": [{"name": "Authorization", "value": "SECRET"}]}},
  {"path": "/etc/b", "append": [{"source": "data:,SECRET"}]}]},
"systemd": {"units": [{"name": "a.service", "enabled": false, "contents": "SECRET", "dropins": [{"name": "b.conf", "contents": "SECRET"}]}]}}}}`
	docs, err := Decode("a.json", []byte(strings.Replace(config, "VERSION", "3.2.0", 1)))
	testkit.Must(t, err)
	want := map[string][]string{
		"/etc/a":    {`contents.compression=""`, "contents.httpHeaders[Authorization].name", "contents.httpHeaders[Authorization].value", "contents.source", "mode=420", "overwrite=true", "path"},
		"/etc/b":    {"append", "path"},
		"a.service": {"contents", "dropins[b.conf].contents", "dropins[b.conf].name", "enabled=false", "name"},
	}
	got := map[string][]string{}
	for name, s := range docs[0].Spelling {
		var fields []string
		for field := range s {
			if value, ok := s.Shown(field); ok {
				field += "=" + value
			}
			fields = append(fields, field)
		}
		slices.Sort(fields)
		got[name] = fields
	}
	testkit.Equal(t, want, got)
	if value, ok := docs[0].Spelling["/etc/b"].Shown("mode"); value != "none" || !ok {
		t.Errorf("a mode that is not there: %q, %t", value, ok)
	}
	// The operator translates Ignition 2 configs, so that their spelling is unknown.
	docs, err = Decode("a.json", []byte(strings.Replace(config, "VERSION", "2.2.0", 1)))
	testkit.Must(t, err)
	testkit.Equal(t, 0, len(docs[0].Spelling))
}
