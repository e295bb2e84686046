package ignition

import (
	"encoding/json"
	"fmt"
	"strings"
)

// config is the part of an Ignition config that Decode reads. The same struct serves Ignition 2
// and 3: fields of the other version stay empty.
type config struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Merge   []resource `json:"merge"`  // 3
			Append  []resource `json:"append"` // 2
			Replace *resource  `json:"replace"`
		} `json:"config"`
		Proxy    map[string]any `json:"proxy"`
		Security struct {
			TLS struct {
				CertificateAuthorities []json.RawMessage `json:"certificateAuthorities"`
			} `json:"tls"`
		} `json:"security"`
	} `json:"ignition"`
	KernelArguments struct {
		ShouldExist    []string `json:"shouldExist"`
		ShouldNotExist []string `json:"shouldNotExist"`
	} `json:"kernelArguments"`
	Passwd struct {
		Users  []named `json:"users"`
		Groups []named `json:"groups"`
	} `json:"passwd"`
	Storage struct {
		Disks       []named      `json:"disks"`
		Raid        []named      `json:"raid"`
		Luks        []named      `json:"luks"`
		Filesystems []named      `json:"filesystems"`
		Directories []node       `json:"directories"`
		Links       []node       `json:"links"`
		Files       []configFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []configUnit `json:"units"`
	} `json:"systemd"`
	Networkd struct { // 2
		Units []named `json:"units"`
	} `json:"networkd"`
}

// named is an object of which notes show the name only.
type named struct {
	Name   string `json:"name"`
	Device string `json:"device"`
	Mount  *named `json:"mount"` // filesystems of 2
}

func (n named) String() string {
	switch {
	case n.Name != "":
		return n.Name
	case n.Mount != nil && n.Mount.Device != "":
		return n.Mount.Device
	case n.Device != "":
		return n.Device
	}
	return "(unnamed)"
}

type owner struct {
	ID   *int   `json:"id"`
	Name string `json:"name"`
}

type node struct {
	Filesystem string `json:"filesystem"` // 2
	Path       string `json:"path"`
	Target     string `json:"target"`
	Mode       *int   `json:"mode"`
	User       owner  `json:"user"`
	Group      owner  `json:"group"`
}

type configFile struct {
	node
	Contents resource        `json:"contents"`
	Append   json.RawMessage `json:"append"` // 2: true or false; 3: a list of resources
}

type configUnit struct {
	Name     string   `json:"name"`
	Contents string   `json:"contents"`
	Enable   bool     `json:"enable"` // 2, deprecated
	Enabled  *bool    `json:"enabled"`
	Mask     bool     `json:"mask"`
	Dropins  []Dropin `json:"dropins"`
}

func (d *decoder) config(raw json.RawMessage, doc *Document) error {
	var c config
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("not an Ignition config: %w", err)
	}
	doc.IgnitionVersion = c.Ignition.Version
	if v := c.Ignition.Version; !strings.HasPrefix(v, "2.") && !strings.HasPrefix(v, "3.") {
		return fmt.Errorf("ignition version %q: vipgen reads 2 and 3", v)
	}
	c.notes(doc)
	c.settings(raw, doc)
	for _, f := range c.Storage.Files {
		doc.Files = append(doc.Files, d.files(f, doc)...)
	}
	for _, u := range c.Systemd.Units {
		doc.Units = append(doc.Units, u.unit(doc))
	}
	return nil
}

func (u configUnit) unit(doc *Document) Unit {
	if u.Mask {
		doc.addNote("unit %s is masked", u.Name)
	}
	if u.Enabled == nil && u.Enable {
		u.Enabled = &u.Enable
	}
	return Unit{Name: u.Name, Enabled: u.Enabled, Contents: u.Contents, Dropins: u.Dropins}
}

// files decodes a file: as one, plus one for each part that is appended to it.
func (d *decoder) files(f configFile, doc *Document) []DecodedFile {
	if f.Filesystem != "" && f.Filesystem != "root" {
		doc.addNote("%s is on filesystem %s", f.Path, f.Filesystem)
	}
	if o := f.node.owners(); o != "" {
		doc.addNote("%s belongs to %s", f.Path, o)
	}
	var whole bool
	var parts []resource
	if json.Unmarshal(f.Append, &whole) != nil {
		_ = json.Unmarshal(f.Append, &parts) // true or false has no parts
	}
	if whole {
		return []DecodedFile{d.decodeFile(f.node, f.Contents, true)}
	}
	var out []DecodedFile
	if f.Contents.Source != nil || len(parts) == 0 {
		out = append(out, d.decodeFile(f.node, f.Contents, false))
	}
	for _, r := range parts {
		out = append(out, d.decodeFile(f.node, r, true))
	}
	return out
}

func (d *decoder) decodeFile(n node, r resource, appended bool) DecodedFile {
	f := DecodedFile{File: File{Path: n.Path, Mode: defaultMode}, Append: appended}
	if n.Mode != nil {
		f.Mode = *n.Mode
	}
	var err error
	if f.Contents, f.Remote, err = d.contents(r); err != nil {
		f.Problem = err.Error()
	}
	return f
}

// defaultMode is the mode of a file without one (Ignition specification, storage.files.mode).
const defaultMode = 0o644

// owners returns the user and group of a node, "" for root.
func (n node) owners() string {
	user, group := n.User.String(), n.Group.String()
	if user == "" && group == "" {
		return ""
	}
	return user + ":" + group
}

func (o owner) String() string {
	switch {
	case o.ID != nil && *o.ID != 0:
		return fmt.Sprint(*o.ID)
	case o.Name != "root":
		return o.Name
	}
	return ""
}
