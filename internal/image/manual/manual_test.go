package manual

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/image"
)

func TestFiles(t *testing.T) {
	files, err := Files(t.Context(), image.Source{Dir: "../../..", Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(found[path], want) {
			t.Errorf("%s lacks %q:\n%.600s", path, want, found[path])
		}
	}
	bash := exec.Command("bash", "-n")
	bash.Stdin = strings.NewReader(found["/completions/vipgen.bash"])
	if out, err := bash.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	again, err := Files(t.Context(), image.Source{Dir: "../../..", Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range again {
		if !bytes.Equal(f.Data, []byte(found[f.Path])) {
			t.Errorf("%s differs the second time", f.Path)
		}
	}
	macro := regexp.MustCompile(`(?m)^\.(\w*)`)
	for path, page := range found {
		if filepath.Ext(path) != ".1" {
			continue
		}
		for _, m := range macro.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(" TH SH nf fi TP B BR ", " "+m[1]+" ") {
				t.Errorf("%s: macro %q", path, m[0])
			}
		}
	}
}
