package image

import (
	"io"
	"log"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestMirror copies an archive to a registry as in docs/install.md, and has containerd pull it
// by the digest of the archive. The registry is the library's own, on loopback.
func TestMirror(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	dir := t.TempDir()
	i := vipgenImage(t)
	pinned, err := i.Write(dir)
	testkit.Must(t, err)
	copied := exec.Command("skopeo", "--insecure-policy", "copy", "--all", "--preserve-digests", "--dest-tls-verify=false",
		"oci-archive:"+filepath.Join(dir, "vipgen-agent.oci.tar"), "docker://"+host+"/vipgen/vipgen-agent:v1alpha1")
	testkit.Run(t, copied)
	_, digest, _ := strings.Cut(pinned, "@")
	c := startContainerd(t)
	name := host + "/vipgen/vipgen-agent@" + digest
	c.ctr("images", "pull", "--plain-http", name)
	if out, err := c.run(name, nil, "vipgen", "version"); err != nil || !strings.Contains(out, "v1.2.3-test") {
		t.Errorf("%v\n%s", err, out)
	}
}
