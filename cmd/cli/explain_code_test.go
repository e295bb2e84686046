package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Every code of reports is explained, as in docs/problems.md.
func TestExplainCode(t *testing.T) {
	codes := regexp.MustCompile(`(?m)^\t\w+ +Code = "(.+)"$`).FindAllSubmatch(testkit.ReadFile(t, "../../api/problem/codes.go"), -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	t.Chdir(t.TempDir())
	for _, code := range codes {
		out := must(t, "explain", string(code[1]))
		if !strings.HasPrefix(out, string(code[1])+": ") || !strings.Contains(out, "\nWhat to do: ") || strings.Contains(out, "](") {
			t.Errorf("%s: got\n%s", code[1], out)
		}
	}
	var got problemCode
	if err := json.Unmarshal([]byte(must(t, "explain", "vip-taken", "-o", "json")), &got); err != nil || got.Code != "vip-taken" || !strings.HasPrefix(got.Do, "choose a free address") {
		t.Errorf("%v, %+v", err, got)
	}
	for args, want := range map[string]int{"explain no-such-code": command.Failed, "explain vip-taken -o html": command.Input, "explain vip-taken --svg x.svg": command.Input} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}
