package diff

import (
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/lazy"
)

// Placeholders of hidden values.
const (
	ownerOnly = "(not shown: only its owner may read the file)"
	aSecret   = "(not shown: a secret)"
)

// ownerOnly reports whether a file's mode keeps group and others from reading it. The operator
// and the installer write pull secrets, keys and kubeconfigs so.
func (f nodeFile) ownerOnly() bool { return readByOwner(f.Mode) }

func readByOwner(mode int) bool { return mode != 0 && mode&0o044 == 0 }

// pullSecrets are the paths of the pull secret, secret whatever their mode.
var pullSecrets = []string{"/var/lib/kubelet/config.json", "/etc/mco/internal-registry-pull-secret.json", "/root/.docker/config.json"}

func secretFile(name string) bool {
	return slices.Contains(pullSecrets, name) || path.Ext(name) == ".key"
}

// privateKey reports whether text has a private key, by its label (RFC 7468, sections 10 and
// 11; OpenSSH's own, too).
func privateKey(text string) bool { return strings.Contains(text, "PRIVATE KEY-----") }

// secretWords are suffixes of secret fields: of pull secrets, kubeconfigs, install-configs and
// Ignition configs.
var secretWords = []string{"auth", "client-key-data", "passwd", "password", "passwordhash", "privatekey", "secret", "token"}

var secretNames = `(?:` + strings.Join(secretWords, "|") + `)`

var (
	secretName = lazy.Regexp(`(?i)` + secretNames + `$`)
	secretLine = lazy.Regexp(`(?im)^([-+ ][^:=\n]*` + secretNames + `["']?\s*[:=]\s*)\S.*$`)
)

// secret reports whether a field must not be shown. Values other than text are never secret: a
// switch, or a name to look up.
func secret(name string, value any) bool {
	text, ok := value.(string)
	return ok && (privateKey(text) || secretName().MatchString(name))
}

// shownLines returns a diff of lines without secrets.
func shownLines(lines string) string { return secretLine().ReplaceAllString(lines, "${1}"+aSecret) }

// secretWithin matches a secret field within a line, as in JSON.
var secretWithin = lazy.Regexp(`(?i)([\w.-]*` + secretNames + `["']?[ \t]*[:=][ \t]*)(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,}\]]+)`)

// Shown returns the text of a node's file (or unit, with mode 0) without secrets, and nothing
// of a file that only its owner may read.
func Shown(name string, mode int, text string) string {
	switch {
	case readByOwner(mode):
		return ownerOnly
	case secretFile(name) || privateKey(text):
		return aSecret
	}
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(shownLine(line))
	}
	return b.String()
}

// shownLine removes the value of the first name in a line, or if that is no secret, of the
// names within it that are, as in JSON. Most lines have none, and are not searched twice.
func shownLine(line string) string {
	lower := strings.ToLower(line)
	if !slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) }) {
		return line
	}
	if shown := shownLines(" " + line)[1:]; shown != line {
		return shown
	}
	if len(line) > longest {
		return aSecret + "\n"
	}
	return secretWithin().ReplaceAllString(line, "${1}"+aSecret)
}

// longest is the number of bytes of a line that are searched for secrets within it.
const longest = 1 << 20

// shownValue returns the value of a field without secrets.
func shownValue(name string, v any) any {
	if secret(name, v) {
		return aSecret
	}
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range x {
			out[key] = shownValue(key, value)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, value := range x {
			out[i] = shownValue(name, value)
		}
		return out
	}
	return v
}
