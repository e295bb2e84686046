package man

import "testing"

// TestText: nothing in a text is syntax of roff.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		".so /etc/passwd":     `\&.so /etc/passwd`,
		"a\n.br\nb":           "a\n\\&.br\nb",
		`a \fB b`:             `a \efB b`,
		"--dir 'x' \"y\" ~^`": `\-\-dir \(aqx\(aq \(dqy\(dq \(ti\(ha\(ga`,
	} {
		if got := text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
