package adopt

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Image is an image that nodes will pull.
type Image struct {
	// Name is agent, keepalived, haproxy or coredns.
	Name  string `json:"name"`
	Image string `json:"image"`
	// Pinned is set for an image with a digest.
	Pinned bool `json:"pinned"`
	// Running is set where the cluster's release has the same image.
	Running bool `json:"running"`
	// Secret is "yes" or "no" for whether the nodes' pull secret has an entry for the registry;
	// "unknown" where the export lacks the secret.
	Secret string `json:"pullSecret"`
	// Mirror names the mirror that serves it, or why none does.
	Mirror string `json:"mirror,omitempty"`
}

// Values of Image.Secret.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
)

// pullSecretPath is the file of kubelet and CRI-O, and of podman in vipgen's units.
const pullSecretPath = "/var/lib/kubelet/config.json"

// images returns the images with their availability to nodes, as far as the export shows it.
func images(export *diff.Cluster, o *importer.Observed, c *render.Cluster) (out []Image) {
	registries, known := registriesOf(export)
	mirrors := mirrorsOf(export)
	running := map[string]bool{}
	for _, i := range render.ImageList(o.Images) {
		running[i[1]] = i[1] != ""
	}
	for _, i := range render.ImageList(c.Images) {
		image := Image{Name: i[0], Image: i[1], Pinned: strings.Contains(i[1], "@"), Running: running[i[1]], Secret: unknown}
		if known {
			image.Secret = no
			if slices.ContainsFunc(registries, func(r string) bool { return within(i[1], r) }) {
				image.Secret = yes
			}
		}
		image.Mirror = mirrored(mirrors, i[1], image.Pinned)
		out = append(out, image)
	}
	return out
}

// registriesOf returns the registries in the pull secret of control-plane nodes, and nothing
// else of it. Releases that keep the secret out of MachineConfigs have none.
func registriesOf(export *diff.Cluster) (names []string, known bool) {
	for _, item := range export.OperatorItems("master") {
		if item.Name != pullSecretPath {
			continue
		}
		var secret struct {
			Auths map[string]struct{} `json:"auths"`
		}
		if json.Unmarshal([]byte(item.Text), &secret) != nil {
			return nil, false
		}
		return slices.Collect(maps.Keys(secret.Auths)), true
	}
	return nil, false
}

// within reports whether an image is in a registry, a namespace in it, or a repository, as
// containers-auth.json(5) and containers-registries.conf(5) match them.
func within(image, prefix string) bool {
	rest, ok := strings.CutPrefix(image, strings.TrimSuffix(prefix, "/"))
	return ok && prefix != "" && (rest == "" || strings.ContainsAny(rest[:1], "/:@"))
}

type mirror struct {
	source  string
	byTag   bool
	mirrors []string
}

func mirrorsOf(export *diff.Cluster) (out []mirror) {
	type entry struct {
		Source  string   `json:"source"`
		Mirrors []string `json:"mirrors"`
	}
	for _, raw := range export.Objects("ImageDigestMirrorSet", "ImageTagMirrorSet", "ImageContentSourcePolicy") {
		var o struct {
			Spec struct {
				Digest []entry `json:"imageDigestMirrors"`
				Tag    []entry `json:"imageTagMirrors"`
				Old    []entry `json:"repositoryDigestMirrors"`
			} `json:"spec"`
		}
		if json.Unmarshal(raw, &o) != nil {
			continue
		}
		for _, e := range slices.Concat(o.Spec.Digest, o.Spec.Old) {
			out = append(out, mirror{e.Source, false, e.Mirrors})
		}
		out = append(out, lists.Map(o.Spec.Tag, func(e entry) mirror { return mirror{e.Source, true, e.Mirrors} })...)
	}
	return out
}

// mirrored names the mirror that serves an image; "" without mirrors.
func mirrored(all []mirror, image string, pinned bool) string {
	if len(all) == 0 {
		return ""
	}
	digestOnly := false
	for _, m := range all {
		switch {
		case !within(image, m.source):
		case m.byTag != pinned && len(m.mirrors) > 0:
			return m.mirrors[0]
		default:
			digestOnly = digestOnly || pinned == m.byTag
		}
	}
	if digestOnly && !pinned {
		return "none: the mirrors of its source work by digest only, and it is named by tag"
	}
	return "none has it"
}
