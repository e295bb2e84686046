// Package command holds what the command lines of vipgen and vipgen-agent share: exit codes,
// usage errors, groups of commands, -o, help, and the format of text, tables and durations.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/internal/lazy"
)

// Exit codes.
const (
	OK      = 0
	Finding = 1 // drift, or another finding that the user asked for
	Input   = 2 // bad input or usage
	Failed  = 3 // could not read, write or run
	// Shadowed is the result of vipgen diff and vipgen adopt where another MachineConfig
	// replaces vipgen's files.
	Shadowed = 4
)

// Code ends a command with an exit code; everything was printed already.
type Code int

// Error is for logs: commands do not print it.
func (c Code) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// ErrFinding ends a command that succeeded with a finding.
const ErrFinding = Code(Finding)

// UsageError is a mistake on the command line.
type UsageError struct {
	command string // path of the command
	err     error
}

// Usage returns a mistake on the command line of c.
func Usage(c *cobra.Command, err error) error { return &UsageError{c.CommandPath(), err} }

// Usagef is Usage with a message.
func Usagef(c *cobra.Command, format string, args ...any) error {
	return Usage(c, fmt.Errorf(format, args...))
}

// Error returns the mistake and how to get help.
func (e *UsageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.err, e.command)
}

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.err }

// flagGroup matches cobra's message about flags that exclude each other: there is no hook for
// it.
var flagGroup = lazy.Regexp(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// Execute runs a command line until it ends or ctx is done. Mistakes that cobra reports without
// a hook are usage errors, too.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	if Completing(args) {
		registerCompletions(root)
	}
	c, err := root.ExecuteContextC(ctx)
	var usage *UsageError
	var flag *pflag.NotExistError
	if errors.As(err, &flag) && c.HasAvailableSubCommands() {
		// An unknown command has no flags either.
		at := 0
		for above := c; above.HasParent(); above = above.Parent() {
			at++
		}
		if at < len(args) && !strings.HasPrefix(args[at], "-") {
			return unknown(c, args[at])
		}
	}
	if err == nil || errors.As(err, &usage) {
		return err
	}
	if m := flagGroup().FindStringSubmatch(err.Error()); m != nil {
		return Usagef(c, "--%s cannot be used together", strings.Join(strings.Fields(m[1]), " and --"))
	}
	return err
}
