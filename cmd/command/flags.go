package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Format is -o, --output: the format of printed output. Files go to --dir.
type Format string

// Add adds the flag; the first format is the default.
func (f *Format) Add(c *cobra.Command, formats ...string) {
	*f = Format(formats[0])
	f.AddOptional(c, formats...)
}

// AddOptional adds the flag to a command that writes files, and prints instead if it is set.
func (f *Format) AddOptional(c *cobra.Command, formats ...string) {
	c.Flags().VarP(&formatValue{f, formats}, "output", "o", "`format` to print: "+strings.Join(formats, ", "))
	Complete(c, "output", formats...)
}

type formatValue struct {
	f       *Format
	formats []string
}

func (v *formatValue) String() string {
	if v.f == nil {
		return ""
	}
	return string(*v.f)
}

func (v *formatValue) Type() string { return "format" }

func (v *formatValue) Set(s string) error {
	if !slices.Contains(v.formats, s) {
		return fmt.Errorf("expected %s", Or(v.formats))
	}
	*v.f = Format(s)
	return nil
}

// Dir adds -d, --dir: the directory for written files.
func Dir(c *cobra.Command, dir *string, usage string) {
	c.Flags().StringVarP(dir, "dir", "d", "", usage)
	_ = c.MarkFlagDirname("dir")
}

// completions is the annotation of a flag with the values to complete it with.
const completions = "vipgen_completions"

// Complete completes the values of a flag. Execute registers them if args ask for completions:
// cobra keeps what is registered, and so all flags of a command tree, until the process ends.
func Complete(c *cobra.Command, flag string, values ...string) {
	f := c.Flag(flag)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[completions] = values
}

// Completing reports whether a command line is a shell's request for completions.
func Completing(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

func registerCompletions(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if values, ok := f.Annotations[completions]; ok {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, child := range c.Commands() {
		registerCompletions(child)
	}
}

// Setup configures the flags of all commands below root: their errors are readable, and an
// empty value, such as that of an unset variable in a script, is an error.
func Setup(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return Usage(c, flagError(c, err)) })
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) (err error) {
		c.Flags().Visit(func(f *pflag.Flag) {
			if value := f.Value.String(); (value == "" || value == "[]") && err == nil {
				err = Usagef(c, "--%s is empty", f.Name)
			}
		})
		return err
	}
	root.SetUsageFunc(printUsage)
	root.SetHelpFunc(printHelp)
}

func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var none *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		f := value.GetFlag()
		hint := ""
		if f.Name == "output" && c.Flags().ShorthandLookup("d") != nil {
			hint = "; files go to --dir DIR"
		}
		return fmt.Errorf("--%s %q: %s%s", f.Name, value.GetValue(), expected(f, errors.Unwrap(value)), hint)
	case errors.As(err, &none):
		name := none.GetSpecifiedName()
		if name != "o" && name != "output" {
			return err
		}
		if c.Flags().ShorthandLookup("d") != nil {
			return fmt.Errorf("%w: -o is a format, and %s prints in one alone; files go to --dir DIR", err, c.CommandPath())
		}
		return fmt.Errorf("%w: %s prints in one format alone", err, c.CommandPath())
	}
	return err
}

// expected describes a flag's values, in place of the message of Go's parsers.
func expected(f *pflag.Flag, cause error) string {
	switch f.Value.Type() {
	case "int", "int32", "int64", "uint", "uint8", "uint32", "uint64":
		return "expected a number"
	case "intSlice":
		return "expected numbers, such as 51,52"
	case "duration", "durationSlice":
		return "expected a duration, such as 500ms, 10s or 5m"
	case "stringToInt":
		return "expected POOL=NUMBER, such as master=3,worker=1"
	case "bool":
		return "expected true or false"
	}
	return cause.Error()
}
