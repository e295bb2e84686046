package facts

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// source reads a cluster.yaml in a temporary directory.
func source(t *testing.T, dir string) (s *Source, log *bytes.Buffer) {
	log = &bytes.Buffer{}
	return &Source{
		Name: "m0", Role: v1alpha1.RoleMaster, ClusterConfig: filepath.Join(dir, "cluster.yaml"),
		Kept: filepath.Join(dir, "kept", "cluster.yaml"), Log: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

// The last good cluster.yaml stays in force while the file is invalid, also over a restart; the
// error is logged once.
func TestLastGoodCluster(t *testing.T) {
	good := testkit.ReadFile(t, "../../golden/cases/baremetal-usermanaged/expected/files/every-pool"+v1alpha1.ClusterConfigPath)
	config, err := v1alpha1.LoadClusterConfig("cluster.yaml", good)
	testkit.Must(t, err)
	domain := config.Spec.Domain
	dir := t.TempDir()
	s, log := source(t, dir)
	_, err = s.Facts()
	testkit.Fails(t, err, "")
	testkit.WriteFile(t, s.ClusterConfig, good)
	load := func(problem bool) *v1alpha1.ClusterConfig {
		t.Helper()
		f, err := s.Facts()
		testkit.Must(t, err)
		testkit.Equal(testkit.In(t, s.Problem()), problem, s.Problem() != "")
		return f.Cluster
	}
	first := load(false)
	testkit.Equal(t, 1, strings.Count(log.String(), "cannot store a copy"))
	testkit.Must(t, os.Mkdir(filepath.Dir(s.Kept), 0o755))
	if load(false) != first {
		t.Error("another value for the same file")
	}
	testkit.WriteFile(t, s.ClusterConfig, []byte("spec: ["))
	for range 2 {
		if load(true) != first {
			t.Error("another value for an invalid file")
		}
	}
	expectLogged(t, log, "cluster.yaml missing: there is no earlier one to use", "cluster.yaml valid", "cluster.yaml invalid: the last valid one stays in use")

	s, log = source(t, dir) // restarted
	testkit.Equal(t, first.Metadata.Name, load(true).Metadata.Name)
	changed := bytes.ReplaceAll(good, []byte("192.168.111.5"), []byte("192.168.111.6"))
	testkit.WriteFile(t, s.ClusterConfig, changed)
	testkit.Equal(t, "192.168.111.6", load(false).Spec.Groups[0].VIPs[0].String())
	testkit.Equal(t, string(changed), string(testkit.ReadFile(t, s.Kept)))
	other := bytes.ReplaceAll(bytes.ReplaceAll(changed, []byte(domain), []byte("other.example.com")), []byte("192.168.111.6"), []byte("192.168.111.7"))
	testkit.WriteFile(t, s.ClusterConfig, other)
	testkit.Equal(t, "192.168.111.6", load(true).Spec.Groups[0].VIPs[0].String())
	testkit.Contains(t, s.Problem(), "cluster.yaml of other.example.com on a node of "+domain)
	again, _ := source(t, dir)
	if _, err := again.Facts(); err != nil || again.Cluster().Spec.Domain != domain {
		t.Errorf("the cluster after a start: %v, %v", again.Cluster(), err)
	}
	testkit.WriteFile(t, s.ClusterConfig, changed)
	load(false)
	testkit.Must(t, os.Remove(s.ClusterConfig))
	load(true)
	testkit.Must(t, os.Mkdir(s.ClusterConfig, 0o755))
	load(true)
	expectLogged(t, log, "cluster.yaml invalid: the last valid one stays in use", "cluster.yaml valid again",
		"cluster.yaml invalid: the last valid one stays in use", "cluster.yaml valid again",
		"cluster.yaml missing: the last valid one stays in use", "cannot read cluster.yaml: the last valid one stays in use")

	s, log = source(t, t.TempDir())
	testkit.WriteFile(t, s.ClusterConfig, []byte("spec: ["))
	_, err = s.Facts()
	testkit.Fails(t, err, "")
	expectLogged(t, log, "cluster.yaml invalid: there is no earlier one to use")
}

var clusterMessage = regexp.MustCompile(`msg="([^"]*cluster\.yaml (?:missing|invalid|valid)[^"]*|cannot read cluster\.yaml[^"]*)"`)

// expectLogged compares the log messages about reading cluster.yaml.
func expectLogged(t *testing.T, log *bytes.Buffer, want ...string) {
	t.Helper()
	var got []string
	for _, m := range clusterMessage.FindAllStringSubmatch(log.String(), -1) {
		got = append(got, m[1])
	}
	testkit.Equal(testkit.In(t, log), want, got)
}

// A cluster.yaml with thousands of invalid groups fills neither the log nor the job's state.
func TestManyProblems(t *testing.T) {
	good := testkit.ReadFile(t, "../../golden/cases/baremetal-usermanaged/expected/files/every-pool"+v1alpha1.ClusterConfigPath)
	var c v1alpha1.ClusterConfig
	testkit.Must(t, yaml.Unmarshal(good, &c))
	group := c.Spec.Groups[0]
	for i := range 2000 {
		group.Name = strings.Repeat("x", i%7)
		c.Spec.Groups = append(c.Spec.Groups, group)
	}
	data, err := c.Marshal()
	testkit.Must(t, err)
	s, log := source(t, t.TempDir())
	testkit.WriteFile(t, s.ClusterConfig, data)
	_, err = s.Facts()
	testkit.Fails(t, err, "")
	if n := strings.Count(s.Problem(), "\n"); n != maxProblems || !strings.HasSuffix(s.Problem(), " more problems") {
		t.Errorf("%d lines, and at the end %q", n+1, s.Problem()[max(0, len(s.Problem())-80):])
	}
	if log.Len() > 1<<14 {
		t.Errorf("%d bytes are logged", log.Len())
	}
}

// The cluster.yaml of a later vipgen is accepted, and the ignored fields are logged once.
func TestLaterCluster(t *testing.T) {
	good := testkit.ReadFile(t, "../../golden/cases/baremetal-usermanaged/expected/files/every-pool"+v1alpha1.ClusterConfigPath)
	s, log := source(t, t.TempDir())
	s.Kept = ""
	testkit.WriteFile(t, s.ClusterConfig, bytes.Replace(good, []byte("spec:\n"), []byte("spec:\n  later: [1]\n"), 1))
	for range 2 {
		if f, err := s.Facts(); err != nil || f.Cluster == nil || s.Problem() != "" {
			t.Fatalf("%+v, problem %q, error %v", f, s.Problem(), err)
		}
	}
	testkit.Equal(testkit.In(t, log), 1, strings.Count(log.String(), "spec.later"))
}
