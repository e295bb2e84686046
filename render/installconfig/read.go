package installconfig

import (
	"fmt"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// Read returns the install-config in data in one form whatever its spelling, and every problem
// that it shows by itself, sorted by position. Consistency with other inputs is not checked
// here. The config is nil when the file is not YAML; otherwise it holds what could be read.
func Read(name string, data []byte) (*InstallConfig, problem.List) {
	doc, problems := source.Parse(name, data)
	if doc == nil {
		return nil, problems
	}
	return ReadDocument(doc)
}

// ReadDocument is Read for a parsed file, or for a view of other objects as an install-config.
func ReadDocument(doc *source.Document) (*InstallConfig, problem.List) {
	var in file
	r := newReader(doc, doc.DecodeKnown(&in, knownFields))
	c := &InstallConfig{Doc: doc}
	r.installVersion(&in)
	c.Name = r.clusterName(in.Metadata.Name)
	c.BaseDomain = r.baseDomain(in.BaseDomain)
	r.clusterDomain(c.Name, c.BaseDomain)
	r.networks(c, &in.Networking)
	r.pools(c, &in)
	r.platform(c, &in.Platform)
	r.mirrors(c, &in)
	c.FeatureSet = r.featureSet(in.FeatureSet)
	c.BootstrapInPlace = doc.Has("bootstrapInPlace")
	c.Newer = r.newer()
	return c, r.report()
}

type reader struct {
	doc      *source.Document
	problems problem.List
	// refused holds the fields that decoding reported already.
	refused map[string]bool
}

func newReader(doc *source.Document, decoding problem.List) *reader {
	r := &reader{doc: doc, problems: decoding, refused: map[string]bool{}}
	for _, p := range decoding.Errors() {
		r.refused[p.Path()] = true
	}
	return r
}

// report returns all problems with their positions, in the order of the file.
func (r *reader) report() problem.List {
	l := r.doc.Locate(r.problems)
	l.Sort()
	return l
}

func (r *reader) add(code problem.Code, field, found, expected, hint string) {
	r.problems = append(r.problems, problem.Problem{
		Severity: problem.Error, Code: code,
		Field: field, Found: found, Expected: expected, Hint: hint,
	})
}

func (r *reader) deprecated(field, found, expected string) {
	r.problems = append(r.problems, problem.Problem{
		Severity: problem.Warning, Code: problem.Deprecated,
		Field: field, Found: found, Expected: expected,
	})
}

// missing reports a missing field, unless decoding reported it or one around it.
func (r *reader) missing(field, expected string, around ...string) {
	for _, f := range append(around, field, "") {
		if r.refused[f] {
			return
		}
	}
	r.add(problem.MissingField, field, "nothing", expected, "")
}

func (r *reader) installVersion(in *file) {
	switch v := in.APIVersion; v {
	case "v1":
	case "v1beta3", "v1beta4":
		r.deprecated("apiVersion", problem.Quote(v), `"v1"`)
	case "":
		r.missing("apiVersion", `"v1"`)
	default:
		r.add(problem.WrongKind, "apiVersion", problem.Quote(v), `"v1"`, "")
	}
	if in.Kind != "" && in.Kind != "InstallConfig" {
		r.add(problem.WrongKind, "kind", problem.Quote(in.Kind), "an install-config, which has no kind", "")
	}
}

func (r *reader) duplicate(field, name, first string) {
	r.add(problem.BadName, field, problem.Quote(name)+" for the second time", "a name of its own",
		fmt.Sprintf("first in %s", first))
}
