package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
)

// Release is the output of `oc adm release info -o json`.
type Release struct {
	// Version is the full version, such as "4.18.3".
	Version string
	// Images maps tags to images.
	Images map[string]string
}

// Tags in a release of the images that nodes use. The agent is not among them.
const (
	tagKeepalived = "keepalived-ipfailover"
	tagHAProxy    = "haproxy-router"
	tagCoreDNS    = "coredns"
)

// ReadRelease parses the output of `oc adm release info -o json`. The error names what was
// found instead.
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

// minor returns "4.18" of "4.18.3", or "".
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// Pinned returns the images of the release in the form of spec.images, with the agent's.
func (r *Release) Pinned(agent string) v1alpha1.Images {
	return v1alpha1.Images{Agent: agent, Keepalived: r.Images[tagKeepalived], HAProxy: r.Images[tagHAProxy], CoreDNS: r.Images[tagCoreDNS], Release: r.Version}
}

var defaultImages = sync.OnceValue(func() (table v1alpha1.Images) {
	if err := yaml.UnmarshalStrict(assets.Images, &table); err != nil {
		panic(err) // the table is part of the program, and tested
	}
	return table
})

// newestImages is the newest release that origin's images are published for. Its HAProxy,
// keepalived and CoreDNS work with every older release.
const newestImages = "4.22"

// images returns all images: the user's, else the release's, else the table's.
func images(user v1alpha1.Images, version string, rel *Release) v1alpha1.Images {
	table := defaultImages()
	v := cmp.Or(version, newestImages)
	for _, s := range []*string{&table.Agent, &table.Keepalived, &table.HAProxy, &table.CoreDNS} {
		*s = strings.ReplaceAll(*s, "{version}", v)
	}
	var released v1alpha1.Images
	if rel != nil {
		released = rel.Pinned("")
	}
	return v1alpha1.Images{
		Agent:      cmp.Or(user.Agent, table.Agent),
		Keepalived: cmp.Or(user.Keepalived, released.Keepalived, table.Keepalived),
		HAProxy:    cmp.Or(user.HAProxy, released.HAProxy, table.HAProxy),
		CoreDNS:    cmp.Or(user.CoreDNS, released.CoreDNS, table.CoreDNS),
	}
}

// DefaultImages returns vipgen's images for an OpenShift version; empty means that of the
// newest images.
func DefaultImages(version string) v1alpha1.Images { return images(v1alpha1.Images{}, version, nil) }

// DefaultAgent reports vipgen's default image of the agent, which is in no registry: nodes
// could not pull it. A default with a digest, as a release of vipgen may carry, is published.
func DefaultAgent(i v1alpha1.Images, s problem.Severity) problem.List {
	usual := defaultImages().Agent
	if i.Agent != usual || strings.Contains(usual, "@") {
		return nil
	}
	return problem.List{{Severity: s, Code: problem.DefaultImage, Field: "spec.images.agent", Found: usual + ", which is not published", Expected: "an image in a registry that nodes reach",
		Hint: "1. skopeo copy --all --preserve-digests oci-archive:vipgen-agent.oci.tar docker://registry.example.com/vipgen-agent:v1.2.3\n" +
			"2. in vipgen.yaml: spec: {images: {agent: 'registry.example.com/vipgen-agent@sha256:...'}}, with the digest in vipgen-agent.digest"}}
}

// ImageList names images in the order in which they are listed everywhere.
func ImageList(i v1alpha1.Images) [][2]string {
	return [][2]string{{"agent", i.Agent}, {"keepalived", i.Keepalived}, {"haproxy", i.HAProxy}, {"coredns", i.CoreDNS}}
}

// checkRelease warns of images of another release than the one to render for, where the input
// shows their release: spec.images.release, the tag of an image, or the release information,
// which also reveals digests that are not of the release.
func (r *resolver) checkRelease(rel *Release) {
	user := r.in.VIP.Spec.Images
	warn := func(field, found, expected, hint string) {
		docs := r.in.vipDocs
		if strings.HasPrefix(field, "--") {
			docs = layers{}
		}
		r.report(problem.Warning, docs, problem.Problem{Code: problem.OtherRelease, Field: field, Found: found, Expected: expected, Hint: hint})
	}
	const hint = "'vipgen images --release-info release.json -o vipconfig' prints those of a release"
	of := "OpenShift " + r.version
	own := user.Keepalived != "" || user.HAProxy != "" || user.CoreDNS != ""
	if r.version != "" && own && user.Release != "" && minor(user.Release) != r.version {
		warn("spec.images.release", "images of OpenShift "+user.Release, "those of "+of, hint)
	}
	if rel != nil && r.version != "" && minor(rel.Version) != r.version {
		warn("--release-info", "images of OpenShift "+rel.Version, "those of "+of, "give the release information of that release")
	}
	list := ImageList(user)
	for _, i := range list[1:] { // the agent is vipgen's
		field, released := "spec.images."+i[0], ""
		if rel != nil {
			released = map[string]string{"keepalived": rel.Images[tagKeepalived], "haproxy": rel.Images[tagHAProxy], "coredns": rel.Images[tagCoreDNS]}[i[0]]
		}
		tag := imageTag(i[1])
		switch {
		case i[1] == "":
		case released != "" && released != i[1]:
			warn(field, i[1], released+", that of OpenShift "+rel.Version, "leave spec.images."+i[0]+" out, or take that one")
		case user.Release == "" && r.version != "" && minor(tag) != r.version && slices.Contains(ignition.SupportedOpenShift(), minor(tag)):
			warn(field, i[1], "an image of "+of, hint)
		}
	}
}

func imageTag(image string) string {
	if i := strings.LastIndexByte(image, ':'); i >= 0 && !strings.ContainsAny(image[i:], "/@") && !strings.Contains(image, "@") {
		return image[i+1:]
	}
	return ""
}

// checkImages warns of images that a disconnected cluster cannot pull: mirrors apply to digests
// alone.
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
		if docs == (layers{}) { // no file to report it in
			docs, field = layer(r.in.Install.Doc), r.in.Install.Mirrors[0].Field
		}
		r.report(problem.Warning, docs, problem.Problem{Code: problem.UnpinnedImage, Field: field, Found: "tags for " + strings.Join(tagged, ", "),
			Expected: "digests, as mirrors of the install-config work by digest only", Hint: "give images in vipgen.yaml, or --release-info; see 'vipgen images'"})
	}
}
