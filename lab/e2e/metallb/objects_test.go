package metallb

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/openshift/api/config/v1" // the modules of the CRDs
	_ "go.universe.tf/metallb/api/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// goldenCases returns the objects of each golden case of `vipgen metallb`, from the expected
// output, with its APIServer object last.
func goldenCases(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	dirs, err := filepath.Glob("../../../golden/metallb/*/expected")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	all := map[string][]*unstructured.Unstructured{}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		for _, document := range append(documents(t, dir, "objects.yaml"), documents(t, dir, "certificate.yaml")...) {
			all[name] = append(all[name], object(t, document))
		}
	}
	return all
}

// documents returns the documents of a file that hold more than comments.
func documents(t *testing.T, dir, name string) (out [][]byte) {
	t.Helper()
	for document := range bytes.SplitSeq(testkit.ReadFile(t, filepath.Join(dir, name)), []byte("---\n")) {
		if bytes.Contains(document, []byte("\nkind: ")) {
			out = append(out, document)
		}
	}
	return out
}

func object(t *testing.T, document []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	testkit.Must(testkit.In(t, string(document)), yaml.Unmarshal(document, &o.Object))
	return o
}

// moduleDir is where a module's source is.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	testkit.Must(testkit.In(t, module), err)
	return strings.TrimSpace(string(out))
}
