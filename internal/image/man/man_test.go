package man

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestText: nothing in a text is syntax of roff.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		".so /etc/passwd":     `\&.so /etc/passwd`,
		"a\n.br\nb":           "a\n\\&.br\nb",
		`a \fB b`:             `a \efB b`,
		"--dir 'x' \"y\" ~^`": `\-\-dir \(aqx\(aq \(dqy\(dq \(ti\(ha\(ga`,
	} {
		testkit.Equal(testkit.In(t, in), want, text(in))
	}
}
