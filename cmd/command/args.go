package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Args checks the number of arguments; a negative most means any number. The usage line of the
// command names the missing ones.
func Args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			// "diff A B", "metallb [install-config.yaml] --address ADDRESS"
			want := strings.Fields(c.Use)[1:]
			return Usagef(c, "missing: %s%s", strings.Join(want[min(len(args), len(want)):], " "), example(c))
		case most >= 0 && len(args) > most:
			return Usagef(c, "unexpected argument %q", args[most])
		}
		return nil
	}
}

// example returns the first example of a command, on a line of its own.
func example(c *cobra.Command) string {
	for line := range strings.Lines(c.Example) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, c.CommandPath()) && !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, "\\") {
			return "\nFor example: " + line
		}
	}
	return ""
}

// Group makes a command that requires a subcommand.
func Group(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.AddCommand(children...)
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return Usagef(c, "missing: one of the commands %s%s", strings.Join(names(c), ", "), example(c))
	}
	return c
}

func names(c *cobra.Command) (out []string) {
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			out = append(out, child.Name())
		}
	}
	return out
}

func unknown(c *cobra.Command, word string) error {
	similar := c.SuggestionsFor(word)
	slices.Sort(similar)
	hint := ""
	if similar = slices.Compact(similar); len(similar) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", Or(similar))
	}
	return Usagef(c, "unknown command %q for %q%s", word, c.CommandPath(), hint)
}

// AddHelp adds to root a command `help` that rejects unknown commands.
func AddHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Print the help of a command",
		Example: "  " + root.CommandPath() + " help " + names(root)[0],
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			of, err := find(root, args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.DeleteFunc(names(of), func(n string) bool { return !strings.HasPrefix(n, begun) }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			of, err := find(root, args)
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag() // its help would lack the flag
			return of.Help()
		},
	})
	root.InitDefaultHelpCmd()
}

func find(c *cobra.Command, words []string) (*cobra.Command, error) {
	for _, word := range words {
		i := slices.IndexFunc(c.Commands(), func(child *cobra.Command) bool { return child.Name() == word })
		if i < 0 {
			return nil, unknown(c, word)
		}
		c = c.Commands()[i]
	}
	return c, nil
}

// AddCompletion adds to root cobra's command `completion`.
func AddCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, err := find(root, []string{"completion"})
	if err != nil {
		return // cobra leaves it out of a program without commands
	}
	c.Use, c.Short = "completion", "Print a script that completes command lines in a shell"
	c.Long = "Print the completion script for a shell. The help of each shell's command says where it goes."
	c.Example = "  " + root.Name() + " completion bash > " + root.Name() + ".bash"
	Group(c)
	for _, shell := range c.Commands() {
		shell.Args = Args(0, 0)
	}
}
