package haproxy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/logging"
)

// printed holds recent texts that HAProxy printed in one of two forms. It prints most
// events twice: as a message, "[WARNING]  (17) : Server a is DOWN", and as its log,
// "Server a is DOWN". It is used only by the log reader.
type printed []form

type form struct {
	text    string
	message bool
}

// mostPrinted bounds the number of lines between the two forms of a text.
const mostPrinted = 64

// isDuplicate reports whether the text of a line was printed before in the other form.
func (p *printed) isDuplicate(line []byte) bool {
	_, text := logging.ParseLine(line)
	f := form{strings.ReplaceAll(text, "'", ""), bytes.HasPrefix(line, []byte("["))}
	if i := slices.Index(*p, form{f.text, !f.message}); i >= 0 {
		*p = slices.Delete(*p, i, i+1)
		return true
	}
	*p = append((*p)[max(0, len(*p)+1-mostPrinted):], f)
	return false
}
