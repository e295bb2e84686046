package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Usage errors are explained, as those of vipgen's own commands.
func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"kil", `unknown command "kil" for "vipgen lab"; did you mean kill?`},
		{"statu -o json", "did you mean stall or status?"},
		{"help kil", "did you mean kill?"},
		{"", "missing: one of the commands"},
		{"up --nodes master=x", `--nodes "master=x": expected POOL=NUMBER, such as master=3,worker=1`},
		{"chaos --duration soon", `--duration "soon": expected a duration, such as 500ms, 10s or 5m`},
	} {
		code, stdout, stderr := run(strings.Fields(tt.args)...)
		if code != command.Input || stdout != "" || !strings.HasPrefix(stderr, "vipgen: ") || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "See 'vipgen lab") {
			t.Errorf("vipgen lab %s: exit code %d, %q\n%s", tt.args, code, stdout, stderr)
		}
	}
}

func TestLabHints(t *testing.T) {
	for _, tt := range []struct {
		f    labFlags
		want string
	}{{labFlags{dir: "/var/lib/vipgen-lab"}, ""}, {labFlags{dir: "/tmp/labs", name: "a"}, " --dir /tmp/labs --name a"}} {
		testkit.Equal(t, tt.want, tt.f.where())
	}
}
