// Package man writes man pages of the command trees of programs.
package man

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pages returns the man pages of all commands of a program, by file name.
func Pages(root *cobra.Command, version string) map[string][]byte {
	out := map[string][]byte{}
	visit(root, func(c *cobra.Command) { out[pageName(c)+".1"] = page(c, root.Name()+" "+version) })
	return out
}

// visit calls do for a command and all visible ones below it.
func visit(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			visit(sub, do)
		}
	}
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns a command's man page, in the macros of man(7). It has no date: the same source
// gives the same page.
func page(c *cobra.Command, source string) []byte {
	var w bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	line(`.TH "%s" "1" "" "%s" "vipgen"`, strings.ToUpper(text(pageName(c))), text(source))
	line(".SH NAME\n%s \\- %s", text(pageName(c)), text(c.Short))
	line(".SH SYNOPSIS\n.nf\n%s\n.fi", text(synopsis(c)))
	if c.Long != "" {
		line(".SH DESCRIPTION\n.nf\n%s\n.fi", text(strings.TrimSpace(c.Long)))
	}
	options(&w, "OPTIONS", c.LocalFlags())
	options(&w, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.HasExample() {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", text(c.Example))
	}
	var others []string
	if c.HasParent() {
		others = append(others, pageName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, pageName(sub))
		}
	}
	for i, name := range others {
		if i == 0 {
			line(".SH SEE ALSO")
		}
		separator := ","
		if i == len(others)-1 {
			separator = ""
		}
		line(".BR %s (1)%s", text(name), separator)
	}
	return w.Bytes()
}

func synopsis(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine()
}

// options lists flags that are not hidden.
func options(w *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if d := f.DefValue; f.Value.Type() != "bool" && !slices.Contains([]string{"", "0", "0s", "[]"}, d) {
			usage += " (default " + strings.Trim(d, "[]") + ")"
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", text(strings.TrimSpace(name+" "+value)), text(usage))
	})
}

// text escapes text so that nothing in it is a macro or an escape (groff_char(7), groff(7)):
// hyphens that a reader may copy, and lines that begin with a dot.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, `"`, `\(dq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
