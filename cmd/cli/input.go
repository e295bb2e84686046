package cli

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// completeFrom completes a flag, also one that takes a list, with names of the cluster on the
// command line, or with the usual ones while that cannot be read.
func (a *app) completeFrom(c *cobra.Command, flag string, f *inputflags.Flags, names func(*render.Cluster) []string, usual ...string) {
	if !a.completing {
		return // as by command.Complete
	}
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		known := usual
		if file := inputflags.Arg(args); file != "-" {
			if cluster, _, err := f.Cluster(&a.Reader, file); err == nil {
				known = names(cluster)
			}
		}
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var out []string
		for _, name := range known {
			if name = before + name; strings.HasPrefix(name, begun) {
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

func rolesOf(c *render.Cluster) []string { return c.Roles }

// nodesOf returns the nodes that the input of a cluster names.
func nodesOf(c *render.Cluster) []string {
	return lists.Map(c.Config.Spec.Peers, func(p v1alpha1.Peer) string { return p.Name })
}

// parseAll parses the values of a flag that may be repeated.
func parseAll[T any](values []string, parse func(string) (T, error)) (out []T, err error) {
	for _, s := range values {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parsed returns the parsed value of a text; the error has the expected form.
func parsed[T any](parse func(string) (T, error), text, expected string, args ...any) (T, error) {
	v, err := parse(text)
	if err != nil {
		return v, fmt.Errorf(expected, args...)
	}
	return v, nil
}

// collectLimit is the memory limit of commands that read files of many megabytes, as long as
// that is more than they need.
const collectLimit = 230 << 20

// collectEarlier makes Go collect garbage before the heap doubles, until undo is called: most
// memory of readers of large files is discarded copies.
func collectEarlier() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, collectLimit))
	return func() { debug.SetMemoryLimit(before) }
}

func clusters(c *cobra.Command, args []string) (input.Fleet, error) {
	r, err := input.Find(args)
	var list problem.List
	if err == nil || errors.As(err, &list) {
		return r, err
	}
	return r, command.Usage(c, err)
}

// eachFile calls do with one file after the other, so that they need not all be kept: the named
// ones, - being standard input, and in folders the relevant ones. Names are as the user gave
// them. Errors of files in a folder are passed to do.
func (a *app) eachFile(names []string, relevant func(name string) bool, do func(name string, inFolder bool, data []byte, err error) error) error {
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			data, err := a.File(name)
			if err == nil {
				err = do(name, false, data, nil)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return input.Unreadable(name, err)
		}
		dir := dirSide{name}
		list, err := dir.list()
		if err != nil {
			return err
		}
		for _, file := range list {
			if !relevant(file) {
				continue
			}
			data, err := dir.read(file)
			if err := do(path.Join(filepath.ToSlash(name), file), true, data, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// quietCluster reads a cluster, and reports warnings.
func (a *app) quietCluster(installConfig string, f *inputflags.Flags) (*render.Cluster, error) {
	return f.Warned(&a.Reader, &a.Console, installConfig)
}

// quietPlan is quietCluster for a plan that is made of a cluster and of options of its own.
func quietPlan[Options, Plan any](a *app, c *cobra.Command, installConfig string, f *inputflags.Flags, options func() (Options, error),
	load func(render.Sources, render.Options, Options) (*Plan, problem.List)) (*Plan, error) {
	x, err := options()
	if err != nil {
		return nil, command.Usage(c, err)
	}
	sources, o, err := f.Given(&a.Reader, installConfig)
	if err != nil {
		return nil, err
	}
	plan, list := load(sources, o, x)
	if err := list.Err(); err != nil {
		return nil, err
	}
	a.Report(list)
	return plan, nil
}
