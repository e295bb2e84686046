package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth is the longest line of help, in columns.
const HelpWidth = 100

// Pages is the base URL of the documentation in help texts.
const Pages = "https://github.com/vipgen/vipgen/blob/main/docs/"

// groupAnnotation is the annotation of a flag with the title of its group.
const groupAnnotation = "vipgen_group"

// GroupFlags lists flags under their own title in help, after the others.
func GroupFlags(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, groupAnnotation, []string{title})
	}
}

func printHelp(c *cobra.Command, _ []string) {
	fmt.Fprintf(c.OutOrStdout(), "%s\n\n", strings.TrimSpace(cmp.Or(c.Long, c.Short+".")))
	_ = c.Usage()
}

func printUsage(c *cobra.Command) error {
	w := c.OutOrStdout()
	fmt.Fprintln(w, "Usage:")
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", c.CommandPath())
	} else {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	printCommands(w, c)
	printFlags(w, "Flags", c.LocalFlags())
	printFlags(w, "Global flags", c.InheritedFlags())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n'%s COMMAND --help' says more about a command.\n", c.CommandPath())
	}
	return nil
}

func printCommands(w io.Writer, c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	list := func(title, id string) {
		head := "\n" + title + "\n"
		for _, child := range c.Commands() {
			if child.GroupID == id && child.IsAvailableCommand() {
				fmt.Fprintf(w, "%s  %-*s %s\n", head, child.NamePadding(), child.Name(), child.Short)
				head = ""
			}
		}
	}
	for _, g := range c.Groups() {
		list(g.Title, g.ID)
	}
	if len(c.Groups()) > 0 {
		list("Other commands:", "")
	} else {
		list("Commands:", "")
	}
}

func printFlags(w io.Writer, title string, all *pflag.FlagSet) {
	titles := []string{title}
	sets := map[string]*pflag.FlagSet{}
	all.VisitAll(func(f *pflag.Flag) {
		of := title
		if group := f.Annotations[groupAnnotation]; group != nil {
			of = group[0]
		}
		if sets[of] == nil {
			sets[of] = pflag.NewFlagSet("", pflag.ContinueOnError)
			if of != title {
				titles = append(titles, of)
			}
		}
		sets[of].AddFlag(shown(f))
	})
	for _, of := range titles {
		if set := sets[of]; set != nil && set.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", of, set.FlagUsagesWrapped(HelpWidth))
		}
	}
}

// shown returns a flag for help: with its default, and durations in short form.
func shown(f *pflag.Flag) *pflag.Flag {
	copied := *f
	switch kind := f.Value.Type(); {
	case f.DefValue == "[]" && (kind == "durationSlice" || kind == "stringToInt"):
		copied.DefValue = "" // pflag knows the defaults of other lists
	case kind == "duration":
		copied.DefValue = shortDuration(f.DefValue)
	}
	return &copied
}
