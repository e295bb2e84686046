package manual

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestFiles(t *testing.T) {
	files, err := Files(t.Context(), image.Source{Dir: "../../..", Version: "v1.2.3"})
	testkit.Must(t, err)
	found := map[string]string{}
	for _, f := range files {
		found[f.Path] = string(f.Data)
	}
	for path, want := range map[string]string{
		"/man/man1/vipgen.1":                   ".BR vipgen\\-render (1),\n",
		"/man/man1/vipgen-render.1":            `.TH "VIPGEN\-RENDER" "1" "" "vipgen v1.2.3" "vipgen"`,
		"/man/man1/vipgen-lab-up.1":            ".B \\-\\-detach\n",
		"/man/man1/vipgen-lab.1":               ".BR vipgen\\-lab\\-up (1)",
		"/man/man1/vipgen-agent-status.1":      `"vipgen\-agent v1.2.3"`,
		"/man/man1/kubectl-vipgen-status.1":    `.TH "KUBECTL\-VIPGEN\-STATUS" "1" "" "kubectl\-vipgen v1.2.3"`,
		"/completions/kubectl_complete-vipgen": "#!/bin/sh\nexec kubectl-vipgen __complete ",
		"/completions/vipgen.bash":             "complete ",
		"/completions/_vipgen":                 "#compdef vipgen",
		"/completions/vipgen.fish":             "complete -c vipgen",
		"/completions/vipgen.ps1":              "Register-ArgumentCompleter",
	} {
		testkit.Contains(testkit.In(t, path), found[path], want)
	}
	bash := exec.Command("bash", "-n")
	bash.Stdin = strings.NewReader(found["/completions/vipgen.bash"])
	testkit.Run(t, bash)
	macro := regexp.MustCompile(`(?m)^\.(\w*)`)
	for path, page := range found {
		if filepath.Ext(path) != ".1" {
			continue
		}
		for _, m := range macro.FindAllStringSubmatch(page, -1) {
			testkit.Contains(testkit.In(t, path, m[0]), " TH SH nf fi TP B BR ", " "+m[1]+" ")
		}
	}
}
