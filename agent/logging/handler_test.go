package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Times have one format whatever the zone, and no line has an empty error.
func TestNew(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 10, 35, 509_123_456, time.FixedZone("", 3600))
	for format, want := range map[string]string{
		"text": "time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a\n" +
			"time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a\n" +
			"time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a error=\"connection refused\"\n",
		"json": `{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a"}` + "\n" +
			`{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a"}` + "\n" +
			`{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a","error":"connection refused"}` + "\n",
	} {
		var out bytes.Buffer
		log := New(&out, format, slog.LevelInfo)
		for _, err := range []any{error(nil), "", errors.New("connection refused")} {
			r := slog.NewRecord(at, slog.LevelWarn, "silent", 0)
			r.Add("server", "a", "error", err)
			testkit.Must(t, log.Handler().Handle(t.Context(), r))
		}
		log.Debug("not logged")
		testkit.Equal(testkit.In(t, format), want, out.String())
	}
}

// Lines of daemons become records with their level, and without their own time stamps.
func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"Mon Nov  3 06:22:17 2025: (demo_API_0) Entering MASTER STATE\n":                `level=INFO msg="(demo_API_0) Entering MASTER STATE" daemon=d`,
		"(demo_API_0) Entering MASTER STATE\n":                                          `level=INFO msg="(demo_API_0) Entering MASTER STATE" daemon=d`,
		"[WARNING]  (17) : Server api-servers/master-1 is UP.\n":                        `level=WARN msg="Server api-servers/master-1 is UP." daemon=d`,
		"[ALERT]    (1) : config : parsing failed":                                      `level=ERROR msg="config : parsing failed" daemon=d`,
		"[NOTICE]   (1) : New worker (17) forked\n":                                     `level=INFO msg="New worker (17) forked" daemon=d`,
		"[INFO] plugin/hosts: reloaded\n":                                               `level=INFO msg="plugin/hosts: reloaded" daemon=d`,
		"[ERROR] plugin/errors: 2 api.demo.example.com. A: read udp 192.0.2.1: timeout": `level=ERROR msg="plugin/errors: 2 api.demo.example.com. A: read udp 192.0.2.1: timeout" daemon=d`,
		"[OTHER] of somebody":                                                           `level=INFO msg="[OTHER] of somebody" daemon=d`,
		"exactly twenty-four long:x":                                                    `level=INFO msg="exactly twenty-four long:x" daemon=d`,
		"... 5 lines left out\n":                                                        `level=INFO msg="... 5 lines left out" daemon=d`,
		" \n":                                                                           "",
		"Mon Nov  3 06:22:17 2025:\n":                                                   "",
	} {
		var out bytes.Buffer
		if n, err := Lines(New(&out, "text", slog.LevelInfo), "d").Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%q: %d, %v", line, n, err)
		}
		_, got, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
		testkit.Equal(testkit.In(t, line), want, got)
	}
}
