package ignition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clarketm/json"
	"github.com/coreos/butane/base/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"
	validation "github.com/coreos/ignition/v2/config/validate"
	"github.com/coreos/vcontext/report"

	"github.com/vipgen/vipgen/internal/lists"
)

// translate returns files and units as an Ignition config of a version, as Butane writes it.
// The types are those of the newest version, which the older ones share as far as a bundle
// needs them; they validate the config.
func translate(files []File, units []Unit, version string) ([]byte, error) {
	c := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	for _, f := range files {
		// Never gzip: the bytes that Go's compressor gives may change with the Go release,
		// and a changed byte in a MachineConfig reboots the pool.
		url, compression, err := util.MakeDataURL(f.Contents, nil, false)
		if err != nil {
			return nil, err
		}
		c.Storage.Files = append(c.Storage.Files, types.File{
			Node: types.Node{Path: f.Path, Overwrite: new(true)},
			FileEmbedded1: types.FileEmbedded1{
				Mode: &f.Mode, Contents: types.Resource{Source: &url, Compression: compression},
			},
		})
	}
	for _, u := range units {
		unit := types.Unit{Name: u.Name, Enabled: u.Enabled}
		if u.Contents != "" {
			unit.Contents = &u.Contents
		}
		for _, d := range u.Dropins {
			unit.Dropins = append(unit.Dropins, types.Dropin{Name: d.Name, Contents: &d.Contents})
		}
		c.Systemd.Units = append(c.Systemd.Units, unit)
	}
	if err := reportError(validation.ValidateWithContext(c, nil), files, units); err != nil {
		return nil, err
	}
	c.Ignition.Version = version
	// As Butane marshals: encoding/json writes empty structs.
	return json.Marshal(c)
}

// reportError returns an error with everything in a report. Warnings count: what Ignition warns
// of, such as a unit that is enabled and has no [Install] section, would not work on the node.
func reportError(r report.Report, files []File, units []Unit) error {
	if len(r.Entries) == 0 {
		return nil
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
