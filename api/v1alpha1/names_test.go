package v1alpha1

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tt := range []struct {
		in                           string
		label, name, labelKey, value bool
	}{
		{"a", true, true, true, true},
		{"a-1", true, true, true, true},
		{"0", true, true, true, true},
		{"", false, false, false, true},
		{"A", false, false, true, true},
		{"a_b", false, false, true, true},
		{"a.b", false, true, true, true},
		{"a..b", false, false, true, true},
		{".a", false, false, false, false},
		{"a.", false, false, false, false},
		{"-a", false, false, false, false},
		{"a-", false, false, false, false},
		{"a.-b", false, false, true, true},
		{"a b", false, false, false, false},
		{"a\n", false, false, false, false},
		{"ä", false, false, false, false},
		{"a\x00", false, false, false, false},
		{"a/b", false, false, true, false},
		{"example.com/rack", false, false, true, false},
		{"example.com/", false, false, false, false},
		{"/rack", false, false, false, false},
		{"Example.com/rack", false, false, false, false},
		{"a/b/c", false, false, false, false},
		{"$(a)", false, false, false, false},
		{long, true, true, true, true},
		{long + "a", false, false, false, false},
		{long + "." + long + "." + long + "." + long[:61], false, true, false, false},
		{long + "." + long + "." + long + "." + long[:62], false, false, false, false},
	} {
		got := [4]bool{ValidLabel(tt.in), ValidName(tt.in), ValidLabelKey(tt.in), ValidLabelValue(tt.in)}
		testkit.Equal(testkit.In(t, tt.in), got, [4]bool{tt.label, tt.name, tt.labelKey, tt.value})
	}
}

func TestUsableAddress(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1":        "",
		"10.0.0.0":         "",
		"2001:db8::1":      "",
		"fd69::2":          "",
		"0.0.0.0":          "the unspecified address",
		"::":               "the unspecified address",
		"127.0.0.53":       "a loopback address",
		"::1":              "a loopback address",
		"224.0.0.18":       "a multicast address",
		"ff02::12":         "a multicast address",
		"255.255.255.255":  "the broadcast address",
		"169.254.0.1":      "a link-local address",
		"fe80::1":          "a link-local address",
		"fe80::1%eth0":     "an address with a zone",
		"2001:db8::1%a\n}": "an address with a zone",
		"::ffff:192.0.2.1": "an IPv4 address written as IPv6",
	} {
		testkit.Equal(testkit.In(t, in), want, UsableAddress(netip.MustParseAddr(in)))
	}
	if UsableAddress(netip.Addr{}) == "" {
		t.Error("no address counts as usable")
	}
}
