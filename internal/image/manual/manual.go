// Package manual makes man pages and shell completions out of the programs' command
// trees.
package manual

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/cmd/agentcli"
	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/internal/image"
)

// Files are the man pages of all commands, below /man, and vipgen's completions,
// below /completions.
func Files(version string) ([]image.File, error) {
	var out []image.File
	add := func(path string, data []byte) {
		out = append(out, image.File{Path: path, Mode: fs.FileMode(0o644), Data: data})
	}
	for _, root := range []*cobra.Command{cli.Command(), agentcli.Command()} {
		visit(root, func(c *cobra.Command) {
			add("/man/man1/"+pageName(c)+".1", page(c, root.Name()+" "+version))
		})
	}
	// Under the names by which shells find them.
	for shell, name := range map[string]string{"bash": "vipgen.bash", "zsh": "_vipgen", "fish": "vipgen.fish", "powershell": "vipgen.ps1"} {
		var script, complaint bytes.Buffer
		if code := cli.Run([]string{"completion", shell}, strings.NewReader(""), &script, &complaint); code != 0 {
			return nil, fmt.Errorf("vipgen completion %s: exit code %d: %s", shell, code, &complaint)
		}
		add("/completions/"+name, script.Bytes())
	}
	return out, nil
}

// visit calls for a command and all below it that help shows.
func visit(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			visit(sub, do)
		}
	}
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is a command's man page, in the macros of man(7). It has no date: the same
// source gives the same page.
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

// text writes text so that nothing in it is a macro or an escape (groff_char(7),
// groff(7)): a hyphen that a reader may copy, and lines that begin with a dot.
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
