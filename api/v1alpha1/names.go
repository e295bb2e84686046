package v1alpha1

import (
	"net/netip"
	"strings"
)

// Names from users are written into keepalived.conf, haproxy.cfg, a Corefile and systemd units.
// These alphabets have no syntax of any of them.

// ValidLabel reports whether s is a DNS label as Kubernetes requires it (RFC 1123 section 2.1):
// lower-case letters, digits and hyphens, at most 63, a letter or digit at both ends.
func ValidLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// ValidName reports whether s is a DNS name of lower-case labels, at most 253 characters (RFC
// 1035 section 2.3.4), without a trailing dot.
func ValidName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !ValidLabel(label) {
			return false
		}
	}
	return true
}

// UsableAddress returns why an address cannot be that of a VIP, host or server, or "".
func UsableAddress(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.Zone() != "":
		return "an address with a zone"
	case a.Is4In6():
		return "an IPv4 address written as IPv6"
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a multicast address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}): // RFC 919 section 7
		return "the broadcast address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	}
	return ""
}

// ValidLabelKey reports whether s is the key of a Kubernetes label: a name of at most 63
// letters, digits, hyphens, underscores and dots, with an optional DNS name and a slash before
// it.
func ValidLabelKey(s string) bool {
	if prefix, name, ok := strings.Cut(s, "/"); ok {
		return ValidName(prefix) && name != "" && ValidLabelValue(name)
	}
	return s != "" && ValidLabelValue(s)
}

// ValidLabelValue reports whether s is the value of a Kubernetes label; it may be empty.
func ValidLabelValue(s string) bool {
	if s == "" {
		return true
	}
	if len(s) > 63 || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
