package agentcli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestLogLevelCommand(t *testing.T) {
	root := t.TempDir()
	steps := []struct {
		args string
		code int
		out  string
	}{
		{"", command.OK, "default\n"},
		{"debug", command.OK, ""},
		{"", command.OK, "DEBUG\n"},
		{"WARN --job haproxy", command.OK, ""},
		{"", command.OK, "DEBUG\nhaproxy WARN\n"},
		{"-o json", command.OK, "{\n  \"apiVersion\": \"vipgen.io/v1alpha1\",\n  \"kind\": \"LogLevels\",\n  \"level\": \"DEBUG\",\n  \"jobs\": {\n    \"haproxy\": \"WARN\"\n  }\n}\n"},
		{"--job haproxy", command.OK, "WARN\n"},
		{"--job mdns", command.OK, "DEBUG\n"},
		{"loud", command.Input, ""},
		{"DEBUG --job nginx", command.Input, ""},
		{"DEBUG INFO", command.Input, ""},
		{"default --job haproxy", command.OK, ""},
		{"", command.OK, "DEBUG\n"},
		{"default", command.OK, ""},
		{"", command.OK, "default\n"},
	}
	for _, s := range steps {
		code, out, errOut := run(t, append([]string{"log-level", "--root", root}, strings.Fields(s.args)...)...)
		if code != s.code || out != s.out {
			t.Errorf("log-level %s: %d, %q, want %d, %q (%s)", s.args, code, out, s.code, s.out, errOut)
		}
	}
	testkit.WriteFile(t, filepath.Join(root, "run/vipgen/log-level"), []byte("loud"))
	if code, out, errOut := run(t, "log-level", "--root", root); code != command.Finding || out != "default\n" || !strings.Contains(errOut, "loud") {
		t.Errorf("with a wrong word: %d, %q, %q", code, out, errOut)
	}
}
