package cli

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestSteps follows STEPS.md on the exported cluster: oc changes the next export, and vipgen
// prints what the step announces.
func TestSteps(t *testing.T) {
	cluster := map[string]string{"": layLive(t)}
	must(t, "adopt", "live.yaml", "--dir", "demo", "--agent-image", "registry.example.com/vipgen-agent:v1")
	t.Chdir("demo")
	out, checked := "", 0
	for _, block := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)\n```").FindAllStringSubmatch(read(t, adopt.StepsName), -1) {
		if block[1] == "text" {
			for want := range strings.SplitSeq(block[2], "\n") {
				if checked++; !strings.Contains(out, "\n"+want+"\n") {
					t.Errorf("no line %q in\n%s", want, out)
				}
			}
			continue
		}
		out = ""
		for line := range strings.SplitSeq(strings.ReplaceAll(block[2], "\\\n", ""), "\n") {
			out += followStep(t, line, cluster)
		}
		if strings.Contains(block[2], "vipgen render") && strings.Contains(out, ": reboot") {
			t.Errorf("the migration reboots:\n%s", out)
		}
	}
	testkit.Equal(t, 5, checked)
}

// followStep runs a command of STEPS.md and returns the output of vipgen; cluster holds the
// objects by file.
func followStep(t *testing.T, line string, cluster map[string]string) string {
	t.Helper()
	words := strings.Fields(line)
	switch {
	case words[0] == "vipgen":
		if words[1] == "render" { // the migration: the step asks for this edit
			lay(t, map[string]string{"vipgen.yaml": strings.Replace(read(t, "vipgen.yaml"), "    profile: classic\n", "", 1)})
		}
		return step(t, words[1:])
	case strings.HasPrefix(line, "oc get "):
		var objects []string
		for _, name := range slices.Sorted(maps.Keys(cluster)) {
			objects = append(objects, cluster[name])
		}
		lay(t, map[string]string{words[len(words)-1]: strings.Join(objects, "---\n")})
	case strings.HasPrefix(line, "oc apply -f "):
		files, err := filepath.Glob(words[3] + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files", line)
		}
		for _, name := range files {
			data := testkit.ReadFile(t, name)
			cluster[name] = string(data)
		}
	case !slices.Contains([]string{"oc wait", "oc patch"}, strings.Join(words[:2], " ")):
		t.Fatalf("unexpected: %s", line)
	}
	return ""
}
