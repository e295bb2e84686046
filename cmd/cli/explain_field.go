package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
)

// schemaNode is the part of the JSON Schema that `vipgen explain FIELD` shows.
type schemaNode struct {
	Type        string                 `json:"type,omitempty"`
	Description string                 `json:"description,omitempty"`
	Enum        []any                  `json:"enum,omitempty"`
	Const       any                    `json:"const,omitempty"`
	Default     any                    `json:"default,omitempty"`
	Minimum     any                    `json:"minimum,omitempty"`
	Maximum     any                    `json:"maximum,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
}

// item returns the schema of a list's items, or the node itself.
func (n *schemaNode) item() *schemaNode {
	for n.Items != nil {
		n = n.Items
	}
	return n
}

func (n *schemaNode) kind() string {
	if n.Items != nil {
		return "list of " + n.Items.kind()
	}
	if n.Type == "" {
		return "text"
	}
	return strings.NewReplacer("string", "text", "object", "mapping").Replace(n.Type)
}

// fieldPath matches field paths of vipgen.yaml.
var fieldPath = lazy.Regexp(`^(?:spec|metadata|apiVersion|kind)(?:$|[.\[])`)

// isField reports whether an argument is a field of vipgen.yaml rather than a file.
func isField(arg string) bool { return fieldPath().MatchString(arg) && !input.IsFile(arg) }

var index = lazy.Regexp(`\[[^\]]*\]`)

// findField walks the schema; the error lists the fields that exist.
func findField(field string) (*schemaNode, error) {
	var n *schemaNode
	if err := json.Unmarshal(v1alpha1.VIPConfigSchema, &n); err != nil {
		return nil, err
	}
	var at []string
	for name := range strings.SplitSeq(strings.Trim(index().ReplaceAllString(field, ""), "."), ".") {
		from := n.item()
		if n = from.Properties[name]; n == nil {
			parent := strings.Join(at, ".")
			if len(from.Properties) == 0 {
				return nil, fmt.Errorf("no field %q in vipgen.yaml: %s is %s and has no fields", field, parent, from.kind())
			}
			return nil, fmt.Errorf("no field %q in vipgen.yaml: %s has %s", field, parent, strings.Join(slices.Sorted(maps.Keys(from.Properties)), ", "))
		}
		at = append(at, name)
	}
	return n, nil
}

func (a *app) explainField(c *cobra.Command, field string, o command.Format) error {
	n, err := findField(field)
	if err != nil {
		return command.Usage(c, err)
	}
	return show(a, o, fieldExplanation{strings.Trim(field, "."), n}, fieldText)
}

// fieldExplanation is a field with its part of the schema of vipgen.yaml.
type fieldExplanation struct {
	Field  string      `json:"field"`
	Schema *schemaNode `json:"schema"`
}

func fieldText(out *printer, f fieldExplanation) {
	n := f.Schema
	fmt.Fprintf(out, "%s: %s\n", f.Field, n.kind())
	out.wrapped("  ", n.Description)
	of := n.item()
	if of != n && of.Description != "" && of.Description != n.Description {
		out.wrapped("  ", "Each: "+of.Description)
	}
	if values := of.values(); values != "" {
		fmt.Fprintf(out, "\nValues: %s\n", values)
	}
	if len(of.Properties) == 0 {
		return
	}
	fmt.Fprintln(out, "\nFields:")
	w := command.Table(out)
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		p, needed := of.Properties[name], ""
		if slices.Contains(of.Required, name) {
			needed = ", required"
		}
		first, _, _ := strings.Cut(p.Description, ". ")
		fmt.Fprintf(w, "  %s\t%s%s\t%s\n", name, p.kind(), needed, strings.TrimSuffix(first, "."))
	}
	w.Flush()
}

func (n *schemaNode) values() string {
	out := lists.Map(n.Enum, func(v any) string { return fmt.Sprint(v) })
	switch {
	case n.Const != nil:
		return fmt.Sprint(n.Const)
	case len(out) > 0:
		return strings.Join(out, ", ")
	case n.Minimum != nil && n.Maximum != nil:
		return fmt.Sprintf("%v to %v", n.Minimum, n.Maximum)
	}
	return ""
}

// completeField completes fields of vipgen.yaml, or the name of an install-config.
func completeField(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if !fieldPath().MatchString(text) {
		return inputflags.CompleteYAML(c, args, text)
	}
	parent, prefix := text, ""
	if at := strings.LastIndexByte(text, '.'); at >= 0 {
		parent, prefix = text[:at], text[:at+1]
	}
	n, err := findField(parent)
	if err != nil || prefix == "" {
		return []string{"spec."}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	out := lists.Map(slices.Sorted(maps.Keys(n.item().Properties)), func(name string) string { return prefix + name })
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
