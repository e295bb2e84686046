package migration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// docs/upgrade.md lists all reasons to wait, in order, with what to do.
func TestWaitsAreDocumented(t *testing.T) {
	var rows strings.Builder
	for w := range waits {
		if waits[w].text == "" || waits[w].next == "" {
			t.Errorf("reason %d has no text", w)
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", Wait(w), waits[w].next)
	}
	page := strings.ReplaceAll(string(testkit.ReadFile(t, "../../docs/upgrade.md")), "`", "")
	if !strings.Contains(page, "|---|---|\n"+rows.String()+"\n") {
		t.Errorf("docs/upgrade.md lacks this table:\n%s", rows.String())
	}
}
