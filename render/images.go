package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
)

// Release is what `oc adm release info -o json` says about a release.
type Release struct {
	// Version is whole, such as "4.18.3".
	Version string
	// Images by tag.
	Images map[string]string
}

// Tags of the images that nodes use in a release. The agent is not in it.
const (
	tagKeepalived = "keepalived-ipfailover"
	tagHAProxy    = "haproxy-router"
	tagCoreDNS    = "coredns"
)

// ReadRelease reads the output of `oc adm release info -o json`. The error says
// what was found instead.
func ReadRelease(data []byte) (*Release, error) {
	var doc struct {
		Metadata struct {
			Version string `json:"version"`
		} `json:"metadata"`
		References struct {
			Spec struct {
				Tags []struct {
					Name string `json:"name"`
					From struct {
						Name string `json:"name"`
					} `json:"from"`
				} `json:"tags"`
			} `json:"spec"`
		} `json:"references"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("no JSON of a release (%w)", err)
	}
	rel := &Release{Version: doc.Metadata.Version, Images: map[string]string{}}
	for _, t := range doc.References.Spec.Tags {
		rel.Images[t.Name] = t.From.Name
	}
	for _, tag := range []string{tagKeepalived, tagHAProxy, tagCoreDNS} {
		switch image := rel.Images[tag]; {
		case image == "":
			return nil, fmt.Errorf("no tag %s under references.spec.tags", tag)
		case !v1alpha1.ValidImage(image):
			return nil, fmt.Errorf("a tag %s that names no image", tag)
		}
	}
	return rel, nil
}

// minor gives "4.18" of "4.18.3".
func (r *Release) minor() string {
	parts := strings.SplitN(r.Version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

var defaultImages = sync.OnceValue(func() (table v1alpha1.Images) {
	if err := yaml.UnmarshalStrict(assets.Images, &table); err != nil {
		panic(err) // the table is part of the program, and tested
	}
	return table
})

// newestImages is the newest release that origin's images are published for.
// HAProxy, keepalived and CoreDNS of a newer one do for every older release.
const newestImages = "4.22"

// images gives all images: the user's, else the release's, else the table's.
func images(user v1alpha1.Images, version string, rel *Release) v1alpha1.Images {
	table := defaultImages()
	v := cmp.Or(version, newestImages)
	for _, s := range []*string{&table.Agent, &table.Keepalived, &table.HAProxy, &table.CoreDNS} {
		*s = strings.ReplaceAll(*s, "{version}", v)
	}
	var released v1alpha1.Images
	if rel != nil {
		released = v1alpha1.Images{Keepalived: rel.Images[tagKeepalived], HAProxy: rel.Images[tagHAProxy], CoreDNS: rel.Images[tagCoreDNS]}
	}
	return v1alpha1.Images{
		Agent:      cmp.Or(user.Agent, table.Agent),
		Keepalived: cmp.Or(user.Keepalived, released.Keepalived, table.Keepalived),
		HAProxy:    cmp.Or(user.HAProxy, released.HAProxy, table.HAProxy),
		CoreDNS:    cmp.Or(user.CoreDNS, released.CoreDNS, table.CoreDNS),
	}
}

// DefaultImages are those of vipgen's table for an OpenShift version; empty means
// that of the newest images.
func DefaultImages(version string) v1alpha1.Images { return images(v1alpha1.Images{}, version, nil) }

// ImageList names images in the order in which they are listed everywhere.
func ImageList(i v1alpha1.Images) [][2]string {
	return [][2]string{{"agent", i.Agent}, {"keepalived", i.Keepalived}, {"haproxy", i.HAProxy}, {"coredns", i.CoreDNS}}
}

// checkImages warns of images that a disconnected cluster will not find:
// mirrors are for digests.
func (r *resolver) checkImages(all v1alpha1.Images) {
	if len(r.in.Install.Mirrors) == 0 {
		return
	}
	var tagged []string
	for _, i := range ImageList(all) {
		if !strings.Contains(i[1], "@") {
			tagged = append(tagged, i[0])
		}
	}
	if len(tagged) > 0 {
		docs, field := r.in.vipDocs, "spec.images"
		if docs == (layers{}) { // no file to have it
			docs, field = layer(r.in.Install.Doc), r.in.Install.Mirrors[0].Field
		}
		r.report(problem.Warning, docs, problem.Problem{Code: problem.UnpinnedImage, Field: field, Found: "tags for " + strings.Join(tagged, ", "),
			Expected: "digests, as mirrors of the install-config work by digest only", Hint: "give images in vipgen.yaml, or --release-info; see 'vipgen images'"})
	}
}
