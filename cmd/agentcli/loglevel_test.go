package agentcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogLevelCommand(t *testing.T) {
	root := t.TempDir()
	steps := []struct {
		args string
		code int
		out  string
	}{
		{"", exitOK, "default\n"},
		{"debug", exitOK, ""},
		{"", exitOK, "DEBUG\n"},
		{"WARN --job haproxy", exitOK, ""},
		{"", exitOK, "DEBUG\nhaproxy WARN\n"},
		{"-o json", exitOK, "{\n  \"level\": \"DEBUG\",\n  \"jobs\": {\n    \"haproxy\": \"WARN\"\n  }\n}\n"},
		{"--job haproxy", exitOK, "WARN\n"},
		{"--job mdns", exitOK, "DEBUG\n"},
		{"loud", exitInput, ""},
		{"DEBUG --job nginx", exitInput, ""},
		{"DEBUG INFO", exitInput, ""},
		{"default --job haproxy", exitOK, ""},
		{"", exitOK, "DEBUG\n"},
		{"default", exitOK, ""},
		{"", exitOK, "default\n"},
	}
	for _, s := range steps {
		code, out, errOut := run(t, append([]string{"log-level", "--root", root}, strings.Fields(s.args)...)...)
		if code != s.code || out != s.out {
			t.Errorf("log-level %s: %d, %q, want %d, %q (%s)", s.args, code, out, s.code, s.out, errOut)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "run/vipgen/log-level"), []byte("loud"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run(t, "log-level", "--root", root); code != exitFinding || out != "default\n" || !strings.Contains(errOut, "loud") {
		t.Errorf("with a wrong word: %d, %q, %q", code, out, errOut)
	}
}
