// Package command is what the command lines of vipgen and vipgen-agent have in common:
// exit codes, mistakes in usage, groups of commands, -o, help, and how text, tables and
// durations are printed.
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
	// Shadowed is of vipgen diff and vipgen adopt: a MachineConfig takes the place of vipgen's files.
	Shadowed = 4
)

// Code ends a command with an exit code, all that there is to say being said.
type Code int

// Error is for logs: nobody prints it.
func (c Code) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// ErrFinding ends a command that did its work and found something.
const ErrFinding = Code(Finding)

// UsageError is a mistake on the command line.
type UsageError struct {
	command string // its path
	err     error
}

// Usage makes an error a mistake on the command line of c.
func Usage(c *cobra.Command, err error) error { return &UsageError{c.CommandPath(), err} }

// Usagef is Usage with a message.
func Usagef(c *cobra.Command, format string, args ...any) error {
	return Usage(c, fmt.Errorf(format, args...))
}

// Error says what is wrong and where help is.
func (e *UsageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.err, e.command)
}

// Unwrap gives what is wrong.
func (e *UsageError) Unwrap() error { return e.err }

// flagGroup is cobra's message about flags that exclude each other: there is no hook for it.
var flagGroup = lazy.Regexp(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// Execute runs a command line until it is done or ctx is. Mistakes that cobra finds
// without a hook are errors of usage, too.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	var usage *UsageError
	var flag *pflag.NotExistError
	if errors.As(err, &flag) && c.HasAvailableSubCommands() {
		// A command that does not exist has no flags either.
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
