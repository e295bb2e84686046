package image

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"github.com/vipgen/vipgen/internal/testkit"
)

// declared holds the properties of the image in a stage of a Containerfile.
type declared struct {
	from   string
	config v1.Config
	copies []string // FROM: SOURCES -> DESTINATION
	runs   []string
	args   []string
}

// stages reads the Containerfile, with the build arguments given in place of the
// defaults.
func stages(t *testing.T, arguments map[string]string) []declared {
	t.Helper()
	file, err := parser.Parse(bytes.NewReader(testkit.ReadFile(t, filepath.Join(top, "Containerfile"))))
	testkit.Must(t, err)
	list, _, err := instructions.Parse(file.AST, nil)
	testkit.Must(t, err)
	var out []declared
	for _, s := range list {
		d := declared{from: s.BaseName}
		var env []string
		expand := func(word string) (string, error) {
			text, _, err := shell.NewLex(file.EscapeToken).ProcessWord(word, shell.EnvsFromSlice(env))
			return text, err
		}
		for _, command := range s.Commands {
			if c, ok := command.(instructions.SupportsSingleWordExpansion); ok {
				testkit.Must(t, c.Expand(expand))
			}
			switch c := command.(type) {
			case *instructions.ArgCommand:
				for _, a := range c.Args {
					value, ok := arguments[a.Key]
					if !ok {
						value = a.ValueString()
					}
					env = append(env, a.Key+"="+value)
					d.args = append(d.args, a.Key)
				}
			default:
				d.add(t, command)
			}
		}
		out = append(out, d)
	}
	return out
}

func (d *declared) add(t *testing.T, command instructions.Command) {
	t.Helper()
	switch c := command.(type) {
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			d.config.Env = append(d.config.Env, e.Key+"="+e.Value)
		}
	case *instructions.LabelCommand:
		if d.config.Labels == nil {
			d.config.Labels = map[string]string{}
		}
		for _, l := range c.Labels {
			d.config.Labels[strings.Trim(l.Key, `"`)] = strings.Trim(l.Value, `"`)
		}
	case *instructions.UserCommand:
		d.config.User = c.User
	case *instructions.EntrypointCommand:
		if c.PrependShell {
			t.Error("the entry point is run by a shell, which the image does not have")
		}
		d.config.Entrypoint = c.CmdLine
	case *instructions.WorkdirCommand:
		d.config.WorkingDir = c.Path
	case *instructions.CopyCommand:
		d.copies = append(d.copies, c.From+": "+strings.Join(c.SourcePaths, " ")+" -> "+c.DestPath)
	case *instructions.RunCommand:
		d.runs = append(d.runs, strings.Join(c.CmdLine, " "))
	default:
		t.Errorf("%s: this test knows nothing of it", command.Name())
	}
}

// TestContainerfile: the Containerfile declares the properties of the image made without a
// registry, and takes its files from the same program.
func TestContainerfile(t *testing.T) {
	for _, version := range []string{"devel", "v1.2.3"} {
		arguments := map[string]string{}
		if version != "devel" { // the default
			arguments["VERSION"] = version
		}
		all := stages(t, arguments)
		if len(all) != 2 {
			t.Fatalf("%d stages", len(all))
		}
		build, last := all[0], all[1]
		testkit.Equal(t, vipgenConfig(version), last.config)
		if last.from != "scratch" || len(last.runs) > 0 || len(last.copies) != 1 || last.copies[0] != "build: /rootfs/ -> /" {
			t.Errorf("last stage: %+v", last)
		}
		if len(build.runs) != 1 || !strings.Contains(build.runs[0], "go -C internal/image run ./cmd/image rootfs ") || !strings.HasSuffix(build.runs[0], " --output /rootfs") {
			t.Errorf("first stage: %+v", build)
		}
		testkit.Contains(t, build.runs[0], `--platform "linux/$TARGETARCH"`, `--version "$VERSION"`, "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH ", "VIPGEN_REVISION=$REVISION ")
	}
}
