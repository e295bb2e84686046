package importer

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/blocks"
	"github.com/vipgen/vipgen/internal/lazy"
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
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	LivenessProbe struct {
		HTTPGet struct {
			Port string `json:"port"`
			Path string `json:"path"`
		} `json:"httpGet"`
	} `json:"livenessProbe"`
}

// infraNamespace is that of the static pods; kube-system was before 4.2.
var infraNamespace = lazy.Regexp(`^openshift-([a-z]+)-infra$`)

// daemons are the containers whose images vipgen has a field for.
var daemons = []string{"keepalived", "haproxy", "coredns"}

// helpers are the other containers of today's pods, whose work vipgen's agent does.
var helpers = map[string]bool{
	"render-config-keepalived": true, "keepalived-monitor": true, "render-config-coredns": true, "coredns-monitor": true,
	"haproxy-monitor": true, "verify-api-int-resolvable": true, "mdns-publisher": true, "verify-hostname": true,
	"render-config-mdns-publisher": true, "render-config-haproxy": true, "haproxy-watcher": true, "clusterrc-generation": true,
	"render-keepalived-conf": true, "render-config": true,
}

// takePod reads a static pod of the operator's; other pods are left alone.
// disabled says that its manifest is switched off.
func (i *importer) takePod(doc *source.Document, disabled bool) {
	var p pod
	list := doc.Decode(&p)
	m := infraNamespace().FindStringSubmatch(p.Metadata.Namespace)
	kind := podKind(p.Metadata.Name)
	if kind == "" || m == nil && p.Metadata.Namespace != "kube-system" && p.Metadata.Namespace != "" {
		return
	}
	i.list = append(i.list, list...)
	if list.Err() != nil {
		return
	}
	i.found = true
	if m != nil {
		if p := assets.PlatformWhere(func(p assets.Platform) bool { return p.Namespace == m[1] }); p.Name != "" {
			i.platform.add(p.Name, position(doc, "metadata.namespace"), byManifest)
		}
	}
	if kind == "keepalived" {
		i.keepalivedPod = true
		i.keepalivedRuns = i.keepalivedRuns || !disabled
	}
	if disabled {
		return
	}
	for n, c := range p.Spec.InitContainers {
		i.takeContainer(doc, fmt.Sprintf("spec.initContainers[%d]", n), c)
	}
	for n, c := range p.Spec.Containers {
		i.takeContainer(doc, fmt.Sprintf("spec.containers[%d]", n), c)
	}
}

// podKind is the pod's name without that of its node.
func podKind(name string) string {
	for _, kind := range append([]string{"mdns-publisher"}, daemons...) {
		if name == kind || strings.HasPrefix(name, kind+"-") {
			return kind
		}
	}
	return ""
}

func position(doc *source.Document, field string) Place {
	line, _ := doc.Position(field)
	return Place{doc.File, line}
}

func (i *importer) takeContainer(doc *source.Document, field string, c container) {
	i.arguments(doc, field, c)
	for n, e := range c.Env {
		if e.Name == "ENABLE_UNICAST" {
			mode := v1alpha1.ModeMulticast
			if v := strings.ToLower(e.Value); v == "yes" || v == "true" {
				mode = v1alpha1.ModeUnicast
			}
			i.flag.add(mode, position(doc, fmt.Sprintf("%s.env[%d].value", field, n)), byManifest)
		}
	}
	switch at := position(doc, field+".image"); {
	case slices.Contains(daemons, c.Name):
		if c.Image != "" {
			i.image(c.Name, c.Image, at, byManifest)
		}
		i.probe(doc, field, c)
	case c.Name == "mdns-publisher":
		i.lose(position(doc, field+".name"), "container mdns-publisher, with its image", "the agent of vipgen publishes names itself")
	case !helpers[c.Name]:
		i.lose(position(doc, field+".name"), "a container of the pod that is not the operator's: "+shown(c.Name), "nothing: run it as a static pod of its own")
	}
}

// probe takes the port of HAProxy's and CoreDNS' health from the liveness probe.
func (i *importer) probe(doc *source.Document, field string, c container) {
	if name := map[string]string{"haproxy": "haproxyReady", "coredns": "corednsHealth"}[c.Name]; name != "" {
		i.port(name, c.LivenessProbe.HTTPGet.Port, position(doc, field+".livenessProbe.httpGet.port"), byManifest)
	}
}

// image notes an image, if it is the reference of one.
func (i *importer) image(name, image string, at Place, r rank) {
	if blocks.HasHole(image) || strings.Contains(image, "{{") {
		return
	}
	if !v1alpha1.ValidImage(image) {
		i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadImage, Field: name, Found: "something else", Expected: "the reference of a container image"})
		return
	}
	claimed(i.images, name, image, at, r)
}

// Arguments of runtimecfg, dynkeepalived, corednsmonitor and monitor: in the
// command, or in a script.
var (
	vipArgument  = lazy.Regexp(`--(api|ingress|dns)-vips?(?:=|\s+)["']?([^"'\s\\;]+)`)
	portArgument = lazy.Regexp(`--(api|lb)-port(?:=|\s+)["']?([0-9]{1,5})\b`)
	variable     = lazy.Regexp(`^\$\{?(\w+)\}?$`)
)

// arguments takes VIPs and ports from the command of a container.
func (i *importer) arguments(doc *source.Document, field string, c container) {
	for part, words := range map[string][]string{".command": c.Command, ".args": c.Args} {
		text := strings.Join(words, "\n")
		for _, m := range portArgument().FindAllStringSubmatch(text, -1) {
			name := map[string]string{"api": "api", "lb": "haproxy"}[m[1]]
			i.port(name, m[2], position(doc, field+part), byManifest)
		}
		for _, m := range vipArgument().FindAllStringSubmatch(text, -1) {
			at := argumentPlace(doc, field+part, words, m[1], m[2])
			value := m[2]
			if v := variable().FindStringSubmatch(value); v != nil {
				value = assigned(text, v[1])
			}
			if value == "" || strings.ContainsAny(value, "${") || strings.HasPrefix(value, "--") {
				continue
			}
			i.argument(m[1], value, at)
		}
	}
}

// argumentPlace is the place of the word of a command that holds a VIP, or
// of the flag before it.
func argumentPlace(doc *source.Document, field string, words []string, group, value string) Place {
	for n, w := range words {
		if strings.Contains(w, value) && (strings.Contains(w, "--"+group+"-vip") || n > 0 && strings.HasPrefix(words[n-1], "--"+group+"-vip")) {
			return position(doc, fmt.Sprintf("%s[%d]", field, n))
		}
	}
	return position(doc, field)
}

// assigned is what a script assigns to a variable, "" if it does not.
func assigned(text, name string) string {
	m := regexp.MustCompile(`(?m)^\s*(?:declare -r\s+)?` + name + `=["']?([^"'\s;]+)`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

func (i *importer) argument(group, value string, at Place) {
	var list []netip.Addr
	for text := range strings.SplitSeq(value, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadAddress, Field: "--" + group + "-vips", Found: "something else", Expected: "IP addresses, separated by commas"})
			return
		}
		list = append(list, a)
	}
	map[string]*claims[[]netip.Addr]{"api": &i.api, "ingress": &i.ingress, "dns": &i.dns}[group].add(list, at, byManifest)
}

var plainName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// shown returns a name as reports show it: one that is no plain word may hold
// anything.
func shown(name string) string {
	name = strings.ReplaceAll(name, blocks.Hole, "*")
	if plainName().MatchString(strings.ReplaceAll(name, "*", "x")) {
		return name
	}
	return fmt.Sprintf("(a name of %d bytes)", len(name))
}
