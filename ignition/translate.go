package ignition

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/clarketm/json"
	"github.com/coreos/butane/config/common"
	"github.com/coreos/vcontext/report"

	"github.com/vipgen/vipgen/internal/lists"
)

// translation translates files and units to an Ignition config as JSON, with Butane's
// validation of the input and Ignition's validation of the result.
type translation func(files []File, units []Unit) ([]byte, error)

// translateWith returns a translation by the method of a Butane version's Config that
// translates to Ignition.
func translateWith[C, I any](toIgnition func(C, common.TranslateOptions) (I, report.Report, error)) translation {
	return func(files []File, units []Unit) ([]byte, error) {
		var c C
		fill(reflect.ValueOf(&c).Elem(), files, units)
		// Never gzip: the bytes that Go's compressor gives may change with
		// the Go release, and a changed byte in a MachineConfig reboots the
		// pool.
		ign, r, err := toIgnition(c, common.TranslateOptions{NoResourceAutoCompression: true})
		if err := reportError(r, err, files, units); err != nil {
			return nil, err
		}
		// As Butane marshals: encoding/json writes empty structs.
		return json.Marshal(ign)
	}
}

// fill sets files and units in a Butane Config. Its types differ between versions while the
// fields are the same, hence the reflection.
func fill(c reflect.Value, files []File, units []Unit) {
	if meta := c.FieldByName("Metadata"); meta.IsValid() {
		// OpenShift's Config requires a name; MachineConfig writes the real one.
		meta.FieldByName("Name").SetString("vipgen")
		meta.FieldByName("Labels").Set(reflect.ValueOf(map[string]string{roleLabel: "worker"}))
	}
	to := grow(c.FieldByName("Storage").FieldByName("Files"), len(files))
	for i, f := range files {
		to.Index(i).FieldByName("Path").SetString(f.Path)
		setPointer(to.Index(i).FieldByName("Mode"), f.Mode)
		setPointer(to.Index(i).FieldByName("Overwrite"), true)
		setPointer(to.Index(i).FieldByName("Contents").FieldByName("Inline"), string(f.Contents))
	}
	to = grow(c.FieldByName("Systemd").FieldByName("Units"), len(units))
	for i, u := range units {
		to.Index(i).FieldByName("Name").SetString(u.Name)
		if u.Enabled != nil {
			setPointer(to.Index(i).FieldByName("Enabled"), *u.Enabled)
		}
		if u.Contents != "" {
			setPointer(to.Index(i).FieldByName("Contents"), u.Contents)
		}
		fillDropins(to.Index(i).FieldByName("Dropins"), u.Dropins)
	}
}

func fillDropins(to reflect.Value, dropins []Dropin) {
	to = grow(to, len(dropins))
	for i, d := range dropins {
		to.Index(i).FieldByName("Name").SetString(d.Name)
		setPointer(to.Index(i).FieldByName("Contents"), d.Contents)
	}
}

func grow(slice reflect.Value, n int) reflect.Value {
	slice.Set(reflect.MakeSlice(slice.Type(), n, n))
	return slice
}

func setPointer[T any](to reflect.Value, v T) { to.Set(reflect.ValueOf(&v)) }

// reportError returns an error with everything in a report. Warnings count: what Ignition warns
// of, such as a unit that is enabled and has no [Install] section, would not work on the node.
func reportError(r report.Report, err error, files []File, units []Unit) error {
	if len(r.Entries) == 0 {
		return err
	}
	lines := lists.Map(r.Entries, func(e report.Entry) string {
		return fmt.Sprintf("%s: %s", place(e.Context.Path, files, units), e.Message)
	})
	return errors.New(strings.Join(lines, "\n"))
}

// place names the part of the bundle at a path such as systemd.units.0.contents.
func place(p []any, files []File, units []Unit) string {
	if len(p) < 3 {
		return fmt.Sprint(p...)
	}
	what := ""
	switch i, _ := p[2].(int); {
	case p[1] == "files" && i < len(files):
		what = "file " + files[i].Path
	case p[1] == "units" && i < len(units):
		what = "unit " + units[i].Name
	}
	for _, step := range p[3:] {
		what += fmt.Sprint(" ", step)
	}
	return what
}
