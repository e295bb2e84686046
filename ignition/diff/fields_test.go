package diff

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
)

// printed prints one field per line.
func printed(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(strings.TrimSpace(strings.Join([]string{f.Path, f.What, f.Old, ">", f.New, f.Lines}, " ")) + "\n")
	}
	return b.String()
}

func TestCompareYAML(t *testing.T) {
	for _, tt := range []struct{ name, a, b, want string }{
		{"the same in other words", "a: 1 # x\nb: [1, 2]", "b:\n- 1\n- 2\na: 1", ""},
		{"a value", "a: {b: 1}", "a: {b: 2}", "a.b  1 > 2\n"},
		{"numbers as they are written", "a: 10000000000000001", "a: 10000000000000002", "a  10000000000000001 > 10000000000000002\n"},
		{"added and removed", "a: 1", "b: {c: x}", "a removed 1 >\nb added  > {\"c\":\"x\"}\n"},
		{"a list by names", "l: [{name: p, v: 1}, {name: q, v: 1}]", "l: [{name: q, v: 2}, {name: r}]",
			"l[p] removed {\"name\":\"p\",\"v\":1} >\nl[q].v  1 > 2\nl[r] added  > {\"name\":\"r\"}\n"},
		{"a list in another order", "l: [{name: p}, {name: q}]", "l: [{name: q}, {name: p}]", "l  another order > q, p\n"},
		{"a list by places", "l: [1, 2]", "l: [1, 3, 4]", "l[1]  2 > 3\nl[2] added  > 4\n"},
		{"a list that ends earlier", "l: [1, 2]", "l: [1]", "l[1] removed 2 >\n"},
		{"keys that are not words", "a.b/c: 1", "a.b/c: 2", "[\"a.b/c\"]  1 > 2\n"},
		{"types", "a: {b: 1}", "a: [1]", "a  {\"b\":1} > [1]\n"},
		{"text of lines", "a: |\n  x\n  y\n", "a: |\n  x\n  z\n", "a   >  @@ -1,2 +1,2 @@\n x\n-y\n+z\n"},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, printed(compareYAML(tt.a, tt.b)))
	}
}

//go:embed testdata/keepalived.conf
var keepalived string

//go:embed testdata/haproxy.cfg
var haproxy string

func TestCompareBlocks(t *testing.T) {
	r := strings.NewReplacer("demo_API_0 {\n  advert_int 1", "demo_API_0 {\n  advert_int 0.04")
	got := compareBlocks(braces(keepalived), braces(r.Replace(keepalived)))
	if len(got) != 1 || got[0].Path != "vrrp_instance demo_API_0" || !strings.Contains(got[0].Lines, "-  advert_int 1\n+  advert_int 0.04\n") {
		t.Errorf("keepalived: %+v", got)
	}
	got = compareBlocks(sections(haproxy), sections(strings.Replace(haproxy, "server a 192.0.2.1", "server a 192.0.2.9", 1)+"backend more\n"))
	if len(got) != 2 || got[0].Path != "backend masters" || got[1].Path != "backend more" || got[1].What != added {
		t.Errorf("haproxy: %+v", got)
	}
	c := Change{}
	c.contents("/etc/keepalived/keepalived.conf.tmpl", keepalived, keepalived+"# end\n")
	if len(c.Fields) != 1 || c.Fields[0].Path != "outside of blocks" {
		t.Errorf("outside: %+v", c)
	}
}

func TestPlace(t *testing.T) {
	for name, want := range map[string][2]string{
		"machineconfigs/a.yaml":                    {".", "machineconfigs/a.yaml"},
		"eu/b/rendered/ignition/master.ign":        {"eu/b/rendered", "ignition/master.ign"},
		"a/files/master/etc/ignition/machine.conf": {"a", "files/master/etc/ignition/machine.conf"},
		"export.yaml":                              {".", "export.yaml"},
		"a/export.yaml":                            {"a", "export.yaml"},
	} {
		if cluster, file := Place(name); cluster != want[0] || file != want[1] {
			t.Errorf("%s: %q %q", name, cluster, file)
		}
	}
}

func FuzzCompareYAML(f *testing.F) {
	f.Add("a: 1", "a: [1, {name: x}]")
	f.Fuzz(func(t *testing.T, a, b string) {
		testkit.Empty(testkit.In(t, "differs from itself"), compareYAML(a, a))
		compareYAML(a, b)
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add(keepalived)
	f.Add(haproxy)
	f.Add("}}\n{{{\n}")
	f.Fuzz(func(t *testing.T, text string) {
		for _, split := range []func(string) []block{braces, sections} {
			all := 0
			for _, b := range split(text) {
				all += len(b.text)
			}
			testkit.Equal(t, len(text), all)
			testkit.Empty(testkit.In(t, "differs from itself"), compareBlocks(split(text), split(text)))
		}
	})
}

func FuzzAdd(f *testing.F) {
	f.Add("all.yaml", machineConfig("a", "worker", "", "/etc/a=x"))
	f.Add("files/master/etc/haproxy/haproxy.cfg", haproxy)
	f.Add("m.json", policyObject)
	f.Fuzz(func(t *testing.T, name, text string) {
		var c Cluster
		if Relevant(name) && c.Add(name, []byte(text)) == nil {
			r := Compare(&c, &c)
			testkit.Equal(testkit.In(t, "differs from itself", r), true, r.Empty())
		}
	})
}

// Secrets are compared and never shown: neither in fields, in lines nor in added text.
func TestSecretsAreNotShown(t *testing.T) {
	const key = "-----BEGIN EC PRIVATE KEY-----\nSECRET"
	file := func(name string, mode int, text string) nodeState {
		return nodeState{files: map[string]nodeFile{name: {DecodedFile: ignition.DecodedFile{File: ignition.File{Path: name, Mode: mode, Contents: []byte(text)}}}}}
	}
	object := func(a, b string) (out []Change) {
		return []Change{{Fields: compareObject([]byte(a), []byte(b))}}
	}
	states := func(name string, mode int, a, b string) []Change {
		return compareStates(file(name, mode, a), file(name, mode, b))
	}
	for _, tt := range []struct {
		name string
		got  []Change
		want string
	}{
		{"a pull secret", states("/var/lib/kubelet/config.json", 0o644, `{"auths": {"r": {"auth": "SECRET1"}}}`, `{"auths": {"r": {"auth": "SECRET2"}}}`), "contents changed  > " + aSecret},
		{"a file of its owner alone", states("/etc/x.conf", 0o600, "SECRET1", "SECRET2"), "contents changed  > " + ownerOnly},
		{"one that was readable", compareStates(file("/x", 0o644, "SECRET1"), file("/x", 0o400, "SECRET2")), "file  mode 0644 > mode 0400\ncontents changed  > " + ownerOnly},
		{"a key", states("/etc/x", 0o644, key+"1", key+"2"), "contents changed  > " + aSecret},
		{"a key in YAML", states("/etc/x.yaml", 0o644, `{"k": "PRIVATE KEY-----\nSECRET1"}`, `{"k": "PRIVATE KEY-----\nSECRET2"}`), "k changed  > " + aSecret},
		{"a key in what is no YAML", states("/etc/x.yaml", 0o644, "a: b: c\n"+key+"1", "a: b: c\n"+key+"2"), "contents changed  > " + aSecret},
		{"a field", states("/etc/x.yaml", 0o644, "users: [{name: a, user: {token: SECRET1}}]", "users: [{name: a, user: {token: SECRET2}}, {name: b, user: {token: SECRET3}}]"),
			"users[a].user.token changed  > " + aSecret + "\nusers[b] added  > {\"name\":\"b\",\"user\":{\"token\":\"" + aSecret + "\"}}"},
		{"a line", states("/etc/x.env", 0o644, "USER=a\nDB_PASSWORD=SECRET1\n", "USER=b\nDB_PASSWORD=SECRET2\n"),
			"   >  @@ -1,2 +1,2 @@\n-USER=a\n-DB_PASSWORD=" + aSecret + "\n+USER=b\n+DB_PASSWORD=" + aSecret},
		{"YAML in other words", states("/etc/x.yaml", 0o644, "a: 1\npassword: \"SECRET\"\n", "password: SECRET\na: 1\n"),
			"   >  @@ -1,2 +1,2 @@\n+password: " + aSecret + "\n a: 1\n-password: " + aSecret},
		{"a Secret", object(`{"kind": "Secret", "data": {"a": "SECRET1", "b": "SECRET"}}`, `{"kind": "Secret", "data": {"a": "SECRET2", "b": "SECRET", "c": "SECRET3"}}`),
			"data.a changed  > " + aSecret + "\ndata.c added  > " + aSecret},
		{"no secret, and what the API server sets", object(`{"kind": "Pod", "status": {"a": 1}, "metadata": {"uid": "x"}, "secret": {"secretName": "a"}, "mountToken": true}`, `{"kind": "Pod", "metadata": {}, "secret": {"secretName": "b"}, "mountToken": false}`),
			"mountToken  true > false\nsecret.secretName  a > b"},
	} {
		if len(tt.got) != 1 {
			t.Errorf("%s: %+v", tt.name, tt.got)
			continue
		}
		c := tt.got[0]
		if c.Lines != "" {
			c.Fields = append(c.Fields, Field{Lines: c.Lines})
		}
		got := printed(c.Fields)
		if strings.TrimSpace(got) != strings.TrimSpace(tt.want) || strings.Contains(got, "SECRET") {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestShown(t *testing.T) {
	for _, tt := range []struct {
		name       string
		file       string
		mode       int
		text, want string
	}{
		{"no secret", "/etc/x.conf", 0o644, "a=1\nkubeconfig: /etc/kubernetes/kubeconfig\n\tend", "a=1\nkubeconfig: /etc/kubernetes/kubeconfig\n\tend"},
		{"a file that its owner reads", "/etc/x", 0o600, "SECRET", ownerOnly},
		{"a pull secret", "/var/lib/kubelet/config.json", 0o644, `{"auths": {"r": {"auth": "SECRET"}}}`, aSecret},
		{"a key", "/etc/x.pem", 0o644, "-----BEGIN PRIVATE KEY-----\nSECRET\n", aSecret},
		{"a field of JSON", "/etc/x.json", 0o644, `{"auths": {"r": {"auth": "SEC\"RET", "email": "a"}}}`, `{"auths": {"r": {"auth": ` + aSecret + `, "email": "a"}}}`},
		{"a field of YAML in braces", "/etc/x.yaml", 0o644, "users: [{user: {token: SECRET}}]\n", "users: [{user: {token: " + aSecret + "}}]\n"},
		{"lines", "/etc/kubeconfig", 0o644, "users:\n- user:\n    token: SECRET\n    client-key-data: SECRET\n", "users:\n- user:\n    token: " + aSecret + "\n    client-key-data: " + aSecret + "\n"},
		{"several words", "/etc/x.env", 0o644, "DB_PASSWORD=SECRET and SECRET\nUSER=a", "DB_PASSWORD=" + aSecret + "\nUSER=a"},
		{"a unit", "x.service", 0, "[Service]\nEnvironment=TOKEN=SECRET\n", "[Service]\nEnvironment=TOKEN=" + aSecret + "\n"},
	} {
		got := Shown(tt.file, tt.mode, tt.text)
		testkit.Equal(testkit.In(t, tt.name), tt.want, got)
		testkit.Lacks(testkit.In(t, tt.name), got, "SECRET")
	}
}
