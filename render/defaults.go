package render

import (
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render/source"
)

// Defaults is a VIPConfig that the clusters of a fleet share; a cluster's own fields override
// it. It is read once for all of them and safe for concurrent use.
type Defaults struct {
	doc      *source.Document
	config   v1alpha1.VIPConfig
	warnings problem.List
}

// ReadDefaults reads the defaults of a fleet. Bad values and warnings are reported when a
// cluster is read, whose fields may replace them. The error is a problem.List.
func ReadDefaults(f File) (*Defaults, error) {
	doc, list := source.Parse(f.Name, f.Data)
	if err := list.Err(); err != nil {
		return nil, err
	}
	d := &Defaults{doc: doc}
	list = doc.DecodeStrict(&d.config)
	list = append(list, doc.Locate(d.config.ValidateKind())...)
	list.Sort()
	d.warnings = list
	if err := list.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

// start returns the VIPConfig that a cluster's own is decoded into. Decoding replaces lists and
// maps as wholes, so nothing shared is written to.
func (d *Defaults) start() *v1alpha1.VIPConfig {
	if d == nil {
		return &v1alpha1.VIPConfig{}
	}
	c := d.config
	c.APIVersion, c.Kind, c.Metadata = "", "", v1alpha1.VIPConfigMetadata{}
	return &c
}

func (d *Defaults) document() *source.Document {
	if d == nil {
		return nil
	}
	return d.doc
}

// ownProfile drops the shared custom timing where a cluster chooses another profile.
func ownProfile(v *v1alpha1.VRRP, own *source.Document) {
	const at = "spec.vrrp."
	if v.Profile == v1alpha1.ProfileCustom || !own.Has(at+"profile") {
		return
	}
	if !own.Has(at + "version") {
		v.Version = 0
	}
	if !own.Has(at + "advertInterval") {
		v.AdvertInterval = 0
	}
}
