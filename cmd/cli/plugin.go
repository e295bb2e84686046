package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
)

// An unknown command is a program, vipgen-NAME, next to vipgen or in PATH. It gets the rest of
// the command line and the streams, and decides the exit code.

const pluginPrefix = "vipgen-"

// pluginName matches the names of commands that may be programs: no path, no flag.
var pluginName = lazy.Regexp(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// pluginDirs returns the directories of programs, in order.
func pluginDirs() (dirs []string) {
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	return append(dirs, lists.Filter(filepath.SplitList(os.Getenv("PATH")), filepath.IsAbs)...)
}

// findPlugin returns the program of a command, or "".
func findPlugin(name string) string {
	if !pluginName().MatchString(name) {
		return ""
	}
	for _, dir := range pluginDirs() {
		if path, err := exec.LookPath(filepath.Join(dir, pluginPrefix+name)); err == nil {
			return path
		}
	}
	return ""
}

// plugin returns the program that runs a command line, "" for vipgen itself, and its arguments.
// Only vipgen-lab is assumed to support help and completion.
func plugin(root *cobra.Command, args []string) (path string, rest []string) {
	if len(args) > 1 && args[1] == labName && (args[0] == "-q" || args[0] == "--quiet") {
		args = args[1:] // the lab has no use for --quiet
	}
	at := 0
	if len(args) > 1 && args[1] == labName && slices.Contains([]string{"help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0]) {
		at = 1
	}
	if len(args) <= at {
		return "", nil
	}
	name := args[at]
	if name != labName && slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) }) {
		return "", nil
	}
	return findPlugin(name), slices.Delete(slices.Clone(args), at, at+1)
}

// labName is the command of the lab, a program that vipgen knows.
const labName = "lab"

// labCommand is the lab's entry in help, and its error where its program is not found.
func (a *app) labCommand() *cobra.Command {
	return &cobra.Command{
		Use:   labName,
		Short: "Run a cluster on this machine and break it",
		Long: `On Linux: build the cluster of an install-config from network namespaces, run on its
nodes the output of 'vipgen render', and see which nodes hold the VIPs while nodes,
links and services fail.

The program vipgen-lab runs it, next to vipgen or in PATH.

Documentation: ` + command.Pages + `lab.md`,
		Example:            "  sudo vipgen lab up install-config.yaml",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, func(arg string) bool { return arg == "-h" || arg == "--help" }) {
				return c.Help()
			}
			if runtime.GOOS != "linux" {
				return errors.New("the lab needs network namespaces of Linux: run it on Linux or in a virtual machine with Linux")
			}
			return errors.New("vipgen-lab not found next to vipgen or in PATH: take it from vipgen's release archives for Linux, or run 'make build' in a checkout of vipgen")
		},
	}
}
