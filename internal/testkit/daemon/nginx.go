package daemon

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

const nginxConf = "/etc/nginx/nginx.conf"

// streamModule is how Debian's libnginx-mod-stream has it loaded.
const streamModule = "/etc/nginx/modules-enabled/50-mod-stream.conf"

// Nginx fails the test unless nginx's own parser (nginx -t) accepts conf without a
// warning. It binds no address, but looks host names up, opens the log and makes the
// directories for temporary files.
func Nginx(t testing.TB, conf []byte) {
	t.Helper()
	if complaint := checkNginx(t, conf); complaint != "" {
		t.Errorf("nginx refuses the configuration:\n%s\n%s", complaint, numbered(conf))
	}
}

// checkNginx returns what nginx has against conf, nothing if it accepts it.
func checkNginx(t testing.TB, conf []byte) string {
	t.Helper()
	nginx := testkit.Program(t, "nginx")
	s := newSandbox(t)
	s.write(t, nginxConf, conf)
	s.prepareNginx(t)
	output, err := s.parser(nil, nginx, "-t", "-c", nginxConf).CombinedOutput()
	if err == nil && !strings.Contains(string(output), "[") {
		return ""
	}
	return complaint(output, err)
}

// PrepareNginx gives a host what Debian's packages of nginx bring besides the
// program.
func (h *Host) PrepareNginx() {
	h.t.Helper()
	h.sandbox.prepareNginx(h.t)
}

func (s *sandbox) prepareNginx(t testing.TB) {
	t.Helper()
	s.write(t, streamModule, []byte("load_module modules/ngx_stream_module.so;\n"))
	s.mkdir(t, "/var/lib/nginx")
	s.mkdir(t, "/var/log/nginx")
}
