package ignition

import (
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
