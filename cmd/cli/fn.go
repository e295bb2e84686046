package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/yamllimit"
	"github.com/vipgen/vipgen/render"
)

// The kind that KRM functions read and write: the KRM Functions Specification, version 1.
const (
	resourceListVersion = "config.kubernetes.io/v1"
	resourceListKind    = "ResourceList"
)

// functionConfig is the file name in problems of the function config.
const functionConfig = "functionConfig"

func (a *app) fnCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fn",
		Short: "Render as a KRM function, for kustomize and kpt",
		Long: `Read a ResourceList on standard input, and write it with the MachineConfigs and
manifests of a cluster among its items: a KRM function. Its functionConfig is a
VIPConfig as in vipgen.yaml, with the install-config in one of these fields:

  spec.installConfig      the install-config itself
  spec.installConfigFile  the name of a file below the working directory
  spec.installConfigRef   name and key of a ConfigMap among the items

and the agent-config, if there is one, in spec.agentConfig, spec.agentConfigFile or
spec.agentConfigRef, and the cluster's Ingress object in spec.clusterIngress,
spec.clusterIngressFile or spec.clusterIngressRef. Items of an earlier run are replaced.

Exit code 2: there are problems; they are also in the list's results.`,
		Example: `  vipgen fn < resource-list.yaml

  # In kustomize, from a kustomization.yaml with 'generators: [demo.yaml]'
  kustomize build --enable-alpha-plugins --enable-exec .`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return a.fn()
		},
	}
}

// resourceList is a ResourceList; nodes keep comments and layout.
type resourceList struct {
	APIVersion     string      `yaml:"apiVersion"`
	Kind           string      `yaml:"kind"`
	Items          []yaml.Node `yaml:"items"`
	FunctionConfig yaml.Node   `yaml:"functionConfig"`
}

func (a *app) fn() error {
	defer collectEarlier()()
	data, err := a.File("-")
	if err != nil {
		return err
	}
	list, err := readResourceList(data)
	if err != nil {
		return err
	}
	files, problems, err := a.renderFunction(list)
	if found, ok := errors.AsType[problem.List](err); ok {
		problems = found
	} else if err != nil {
		return err
	}
	out, werr := list.withResults(files, problems)
	if werr != nil {
		return werr
	}
	if _, werr := a.Out.Write(out); werr != nil {
		return werr
	}
	if err == nil {
		a.Report(problems)
	}
	return err
}

func readResourceList(data []byte) (*resourceList, error) {
	bad := func(found, expected string) error {
		return problem.List{{File: "-", Severity: problem.Error, Code: problem.Syntax, Found: found, Expected: expected}}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, bad("nothing", "a ResourceList")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, bad(err.Error(), "a ResourceList")
	}
	if p := yamllimit.New(len(data)).Check(&root); p != nil {
		p.File, p.Severity = "-", problem.Error
		return nil, problem.List{*p}
	}
	var list resourceList
	if err := root.Decode(&list); err != nil {
		return nil, bad(err.Error(), "a ResourceList")
	}
	if list.Kind == "" && list.APIVersion == "" {
		return nil, bad("neither apiVersion nor kind", resourceListVersion+" "+resourceListKind)
	}
	if list.Kind != resourceListKind || !strings.HasPrefix(list.APIVersion, "config.kubernetes.io/") {
		return nil, bad(fmt.Sprintf("%s %s", problem.Quote(list.APIVersion), problem.Quote(list.Kind)), resourceListVersion+" "+resourceListKind)
	}
	if list.FunctionConfig.Kind != yaml.MappingNode {
		return nil, bad("no functionConfig", "functionConfig: a VIPConfig with spec.installConfig")
	}
	return &list, nil
}

func (a *app) renderFunction(list *resourceList) ([]render.OutputFile, problem.List, error) {
	sources, err := a.functionSources(list)
	if err != nil {
		return nil, nil, err
	}
	cluster, problems, err := render.Load(sources, render.Options{})
	for i := range problems {
		problems[i] = withoutPosition(problems[i])
	}
	if err != nil {
		return nil, nil, problems
	}
	files, err := cluster.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig}})
	return files, problems, err
}

// withoutPosition removes the line of a problem in a rewritten document.
func withoutPosition(p problem.Problem) problem.Problem {
	if field, ok := strings.CutPrefix(p.File, functionConfig+" "); ok {
		p.File, p.Field = functionConfig, strings.TrimSuffix(field+"."+p.Field, ".")
	}
	if p.File == functionConfig {
		p.Line, p.Column = 0, 0
	}
	return p
}

// functionSources returns the files of a cluster from a function's config.
func (a *app) functionSources(list *resourceList) (s render.Sources, err error) {
	spec := child(&list.FunctionConfig, "spec")
	install, err := a.reference(list, spec, "installConfig")
	if err != nil {
		return s, err
	}
	if install == nil {
		return s, problem.List{{File: functionConfig, Severity: problem.Error, Code: problem.MissingField, Field: "spec.installConfig",
			Found: "nothing", Expected: "the install-config, or spec.installConfigFile, or spec.installConfigRef"}}
	}
	s.InstallConfig = *install
	if s.AgentConfig, err = a.reference(list, spec, "agentConfig"); err != nil {
		return s, err
	}
	if s.ClusterIngress, err = a.reference(list, spec, "clusterIngress"); err != nil {
		return s, err
	}
	// The rest is a VIPConfig; a function's config has more metadata.
	own := yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(list.FunctionConfig.Content); i += 2 {
		if list.FunctionConfig.Content[i].Value != "metadata" {
			own.Content = append(own.Content, list.FunctionConfig.Content[i:i+2]...)
		}
	}
	text, err := yaml.Marshal(&own)
	s.VIPConfig = &render.File{Name: functionConfig, Data: text}
	return s, err
}

// readBelow reads a file of the working directory only: the author of the function's config may
// not be its user, and may read its results.
func readBelow(name string) ([]byte, error) {
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, input.Unreadable(name, err)
	}
	defer root.Close()
	f, err := fileio.Open(root, name)
	if err != nil {
		return nil, input.Unreadable(name, err)
	}
	defer f.Close()
	return input.Bounded(name, f)
}

// reference returns a file from the spec: field itself, the name of a file, or a reference to a
// ConfigMap, or nil.
func (a *app) reference(list *resourceList, spec *yaml.Node, field string) (*render.File, error) {
	inline, file, ref := removeChild(spec, field), removeChild(spec, field+"File"), removeChild(spec, field+"Ref")
	bad := func(name, found, expected string) error {
		return problem.List{{File: functionConfig, Severity: problem.Error, Code: problem.MissingField, Field: "spec." + name, Found: found, Expected: expected}}
	}
	switch {
	case inline != nil:
		f := &render.File{Name: functionConfig + " spec." + field}
		if inline.Kind == yaml.ScalarNode {
			f.Data = []byte(inline.Value) // inline text
			return f, nil
		}
		text, err := yaml.Marshal(inline)
		f.Data = text
		return f, err
	case file != nil:
		data, err := readBelow(file.Value)
		return &render.File{Name: file.Value, Data: data}, err
	case ref != nil:
		var r struct{ Name, Key string }
		if err := ref.Decode(&r); err != nil || r.Name == "" {
			return nil, bad(field+"Ref", "no name", "name and key of a ConfigMap")
		}
		for i := range list.Items {
			item := &list.Items[i]
			if value(item, "kind") != "ConfigMap" || value(child(item, "metadata"), "name") != r.Name {
				continue
			}
			if text := child(child(item, "data"), r.Key); text != nil {
				return &render.File{Name: path.Join("ConfigMap "+r.Name, r.Key), Data: []byte(text.Value)}, nil
			}
			return nil, bad(field+"Ref.key", problem.Quote(r.Key), "a key of ConfigMap "+r.Name)
		}
		return nil, bad(field+"Ref.name", problem.Quote(r.Name), "the name of a ConfigMap among the items")
	}
	return nil, nil
}

// child returns the value of a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func value(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil {
		return v.Value
	}
	return ""
}

// removeChild removes a key and returns its value, or nil.
func removeChild(n *yaml.Node, key string) *yaml.Node {
	v := child(n, key)
	if v == nil {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
			break
		}
	}
	return v
}

// withResults returns the list with the rendered files, byte by byte as vipgen render writes
// them, and the results.
func (l *resourceList) withResults(files []render.OutputFile, problems problem.List) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", resourceListVersion, resourceListKind)
	b.WriteString("items:")
	if len(l.Items)+len(files) == 0 {
		b.WriteString(" []")
	}
	b.WriteByte('\n')
	rendered := map[string]bool{}
	for _, f := range files {
		var n yaml.Node
		if err := yaml.Unmarshal(f.Data, &n); err != nil {
			return nil, err
		}
		rendered[identity(n.Content[0])] = true
	}
	for i := range l.Items {
		if rendered[identity(&l.Items[i])] {
			continue // from an earlier run
		}
		text, err := yaml.Marshal(&l.Items[i])
		if err != nil {
			return nil, err
		}
		writeItem(&b, text)
	}
	for _, f := range files {
		writeItem(&b, f.Data)
	}
	if len(problems) > 0 {
		text, err := yaml.Marshal(map[string]any{"results": results(problems)})
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}

func identity(n *yaml.Node) string {
	meta := child(n, "metadata")
	return strings.Join([]string{value(n, "apiVersion"), value(n, "kind"), value(meta, "namespace"), value(meta, "name")}, " ")
}

func writeItem(b *bytes.Buffer, text []byte) {
	start := "- "
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			b.WriteString(start)
		}
		b.Write(line)
		start = "  "
	}
}

func results(list problem.List) []map[string]any {
	var out []map[string]any
	for _, p := range list {
		r := map[string]any{"message": command.SafeLine(p.String()), "severity": string(p.Severity), "tags": map[string]string{"code": string(p.Code)}}
		if p.Field != "" {
			r["field"] = map[string]string{"path": p.Field}
		}
		out = append(out, r)
	}
	return out
}
