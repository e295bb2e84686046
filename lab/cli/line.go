package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandLine returns a command line that repeats a command: its arguments, then the flags that
// were set, by name. Words are quoted for a shell where necessary.
func commandLine(c *cobra.Command, args []string) string {
	words := []string{c.CommandPath()}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Value.Type() == "bool" && value == "true":
			words = append(words, "--"+f.Name)
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+"="+value)
		default:
			if list, ok := f.Value.(pflag.SliceValue); ok {
				value = strings.Join(list.GetSlice(), ",")
			}
			words = append(words, "--"+f.Name, quoted(value))
		}
	})
	return strings.Join(words, " ")
}

// quoted returns a word quoted for a POSIX shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
