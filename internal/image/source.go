package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Source is a checkout of vipgen.
type Source struct {
	// Dir holds its go.mod.
	Dir string
	// Version is stamped into what is built.
	Version string
}

// Programs of vipgen.
var programs = []string{"vipgen", "vipgen-agent"}

const (
	modulePath = "github.com/vipgen/vipgen"
	ownLicense = "Apache-2.0"
)

// validVersion is what may stand in a label, in the linker's flags and in a
// file's name.
var validVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// settings are Go's own defaults, so that nobody's environment or `go env -w`
// changes what is built (go help environment).
var settings = []string{
	"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off",
	"GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8",
}

// build compiles the programs, static, into a directory.
func (s Source) build(ctx context.Context, p v1.Platform, dir string) error {
	if !validVersion.MatchString(s.Version) {
		return fmt.Errorf("version %q: expected letters, digits and . _ + -, such as v1.2.3", s.Version)
	}
	flags := "-s -w -X " + modulePath + "/cmd/command.stamped=" + s.Version
	args := []string{"build", "-trimpath", "-ldflags", flags, "-o", dir + string(filepath.Separator)}
	for _, name := range programs {
		args = append(args, "./cmd/"+name)
	}
	_, err := s.run(ctx, []string{"GOOS=" + p.OS, "GOARCH=" + p.Architecture}, args...)
	return err
}

// run runs Go's tool in the checkout and returns what it printed.
func (s Source) run(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Dir
	cmd.Env = append(append(os.Environ(), settings...), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], s.Dir, err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// moduleDirs says where the sources of modules are, by their paths.
func (s Source) moduleDirs(ctx context.Context, paths []string) (map[string]string, error) {
	out, err := s.run(ctx, nil, append([]string{"list", "-m", "-f", "{{ .Path }}\t{{ .Dir }}"}, paths...)...)
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

// goRoot is where Go itself is.
func (s Source) goRoot(ctx context.Context) (string, error) {
	out, err := s.run(ctx, nil, "env", "GOROOT")
	return strings.TrimSpace(out), err
}
