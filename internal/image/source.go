package image

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Source is a checkout of vipgen.
type Source struct {
	// Dir holds its go.mod.
	Dir string
	// Version is stamped into the programs.
	Version string
}

// Programs of vipgen: those of its image, the additional one of all archives, and that of the
// archives for Linux.
var programs = []string{"vipgen", "vipgen-agent", "vipgen-bgp"}

const (
	pluginProgram = "kubectl-vipgen"
	labProgram    = "vipgen-lab"
)

// inSystem returns the name of a program's file on a platform.
func inSystem(p v1.Platform, program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// labModule is the module of the lab, below that of vipgen.
const labModule = "lab"

// moduleOf returns the folder of a program's module in a checkout.
func moduleOf(program string) string {
	if program == labProgram {
		return labModule
	}
	return "."
}

const (
	modulePath = "github.com/vipgen/vipgen"
	ownLicense = "Apache-2.0"
)

// validVersion is valid in a label, in the linker's flags and in a file's name.
var validVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// settings are Go's defaults, so that neither the environment nor `go env -w` changes the build
// (go help environment).
var settings = []string{
	"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off",
	"GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8",
}

// build compiles static programs into a directory, unless they are there already, as an image
// and an archive share them.
func (s Source) build(ctx context.Context, p v1.Platform, names []string, dir string) error {
	if !validVersion.MatchString(s.Version) {
		return fmt.Errorf("version %q: expected letters, digits and . _ + -, such as v1.2.3", s.Version)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	revision := s.revision(ctx)
	if revision != "" && !validVersion.MatchString(revision) {
		return fmt.Errorf("%s %q: expected a commit", revisionVariable, revision)
	}
	flags := fmt.Sprintf("-s -w -X %[1]s/cmd/command.stamped=%[2]s -X %[1]s/cmd/command.stampedRevision=%[3]s", modulePath, s.Version, revision)
	args := []string{"build", "-trimpath", "-ldflags", flags, "-o", dir + string(filepath.Separator)}
	missing := map[string][]string{}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing[moduleOf(name)] = append(missing[moduleOf(name)], "./cmd/"+name)
		}
	}
	for _, module := range slices.Sorted(maps.Keys(missing)) {
		if _, err := s.run(ctx, module, []string{"GOOS=" + p.OS, "GOARCH=" + p.Architecture}, append(args, missing[module]...)...); err != nil {
			return err
		}
	}
	return nil
}

// revisionVariable holds the commit of a source that is no clone, as in the Containerfile.
const revisionVariable = "VIPGEN_REVISION"

// revision returns the commit that is stamped into programs; empty if it is unknown.
func (s Source) revision(ctx context.Context) string {
	if given := os.Getenv(revisionVariable); given != "" {
		return given
	}
	out, err := s.git(ctx, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
	if err != nil {
		return ""
	}
	return out
}

// RunLab runs a program of the lab's module, by its package.
func (s Source) RunLab(ctx context.Context, pkg string, args ...string) error {
	_, err := s.run(ctx, labModule, nil, append([]string{"run", pkg}, args...)...)
	return err
}

// run runs Go's tool in a module of the checkout and returns its output.
func (s Source) run(ctx context.Context, module string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(s.Dir, module)
	cmd.Env = append(append(os.Environ(), settings...), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], cmd.Dir, err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// moduleDirs returns the source folders of modules that one of the checkout uses, by module
// path.
func (s Source) moduleDirs(ctx context.Context, module string, paths []string) (map[string]string, error) {
	out, err := s.run(ctx, module, nil, append([]string{"list", "-m", "-f", "{{ .Path }}\t{{ .Dir }}"}, paths...)...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(out) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if dir == "" {
			return nil, fmt.Errorf("the source of module %s is not here: run `go mod download`", path)
		}
		dirs[path] = dir
	}
	return dirs, nil
}

// goRoot returns Go's own folder.
func (s Source) goRoot(ctx context.Context) (string, error) {
	out, err := s.run(ctx, ".", nil, "env", "GOROOT")
	return strings.TrimSpace(out), err
}
