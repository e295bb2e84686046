package migration

import (
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// docs/upgrade.md lists every reason to wait, in order and with a remedy, and no other.
func TestWaitsAreDocumented(t *testing.T) {
	table := `\|---\|---\|\n`
	for w := range waits {
		if waits[w] == "" {
			t.Errorf("reason %d has no text", w)
		}
		table += `\| ` + regexp.QuoteMeta(Wait(w).String()) + ` \| \S.* \|\n`
	}
	page := strings.ReplaceAll(string(testkit.ReadFile(t, "../../docs/upgrade.md")), "`", "")
	if !regexp.MustCompile(table + `\n`).MatchString(page) {
		t.Errorf("docs/upgrade.md lacks this table:\n%s", table)
	}
}
