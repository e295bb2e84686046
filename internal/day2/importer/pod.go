package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
	"github.com/vipgen/vipgen/render/source"
)

// pod is the part of a Pod that is read: a static pod's manifest, or its mirror.
type pod struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`
}

type container struct {
	Env []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

var infraNamespace = lazy.Regexp(`^openshift-([a-z]+)-infra$`)

// readPod reads keepalived's static pod, which has the mode where no node's files do, and shows
// whether nodes hold VIPs; other pods are ignored. disabled is set where its manifest is
// disabled.
func (i *importer) readPod(doc *source.Document, disabled bool) {
	var p pod
	list := doc.Decode(&p)
	m := infraNamespace().FindStringSubmatch(p.Metadata.Namespace)
	if !isKeepalivedPod(p.Metadata.Name) || m == nil && p.Metadata.Namespace != "" {
		return
	}
	i.list = append(i.list, list...)
	if list.Err() != nil {
		return
	}
	i.found, i.keepalivedPod = true, true
	i.keepalivedRuns = i.keepalivedRuns || !disabled
	if m != nil {
		if p := assets.PlatformWhere(func(p assets.Platform) bool { return p.Namespace == m[1] }); p.Name != "" {
			i.platform.add(p.Name, position(doc, "metadata.namespace"), byManifest)
		}
	}
	if disabled {
		return
	}
	for field, containers := range map[string][]container{"spec.initContainers": p.Spec.InitContainers, "spec.containers": p.Spec.Containers} {
		for n, c := range containers {
			i.readMode(doc, fmt.Sprintf("%s[%d]", field, n), c)
		}
	}
}

func isKeepalivedPod(name string) bool {
	return name == "keepalived" || strings.HasPrefix(name, "keepalived-")
}

func position(doc *source.Document, field string) Place {
	line, _ := doc.Position(field)
	return Place{doc.File, line}
}

func (i *importer) readMode(doc *source.Document, field string, c container) {
	for n, e := range c.Env {
		if e.Name == "ENABLE_UNICAST" {
			mode := v1alpha1.ModeMulticast
			if slices.Contains([]string{"yes", "true"}, strings.ToLower(e.Value)) {
				mode = v1alpha1.ModeUnicast
			}
			i.flag.add(mode, position(doc, fmt.Sprintf("%s.env[%d].value", field, n)), byManifest)
		}
	}
}

var plainName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// shown returns a name for reports: one that is no plain word may hold anything.
func shown(name string) string {
	name = strings.ReplaceAll(name, keepalivedconf.Hole, "*")
	if plainName().MatchString(strings.ReplaceAll(name, "*", "x")) {
		return name
	}
	return fmt.Sprintf("(a name of %d bytes)", len(name))
}
