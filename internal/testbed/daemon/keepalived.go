package daemon

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"syscall"
	"testing"
)

const keepalivedConf = "/etc/keepalived/keepalived.conf"

// Keepalived fails the test unless keepalived's own parser (keepalived -t) accepts conf without
// a message. The interfaces in conf exist meanwhile, as on the node.
//
// keepalived 2.2.7 exits with 0 and prints a blank line if it accepts a file. It exits with 5
// and names the line for all other messages, including warnings: an unknown keyword, a number
// out of range, a missing interface, authentication under VRRPv3, a password beyond 8 bytes, an
// undefined track file, empty unicast peers (it would fall back to multicast), a missing brace.
// It exits with 6 for scripts without enable_script_security. Only for an include without a
// match it exits with 0, so any output counts as a refusal. With a vrrp_script it ends itself
// by SIGTERM after its last message, if any.
//
// It checks the configuration alone: not whether unicast_src_ip is an address of the interface,
// whether a peer is the node itself, or whether the directory of a track file exists; and
// init_file creates nothing.
func Keepalived(t testing.TB, conf []byte) { t.Helper(); Installed.CheckKeepalived(t, conf) }

// CheckKeepalived is Keepalived with the generation's.
func (g Generation) CheckKeepalived(t testing.TB, conf []byte) {
	t.Helper()
	if complaint := g.checkKeepalived(t, conf); complaint != "" {
		t.Errorf("keepalived refuses the configuration:\n%s\n%s", complaint, numbered(conf))
	}
}

// checkKeepalived returns keepalived's messages about conf, "" if it accepts it.
func checkKeepalived(t testing.TB, conf []byte) string {
	t.Helper()
	return Installed.checkKeepalived(t, conf)
}

func (g Generation) checkKeepalived(t testing.TB, conf []byte) string {
	t.Helper()
	keepalived := g.program(t, "keepalived")
	s := newSandboxOf(t, g)
	s.write(t, keepalivedConf, conf)
	s.mkdirsOfTrackFiles(t, conf) // required by 2.3
	cmd := s.parser(linksOf(conf), keepalived, "-t", "-f", keepalivedConf)
	output, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM && bytes.Contains(conf, []byte("vrrp_script ")) {
		err = nil
	}
	return complaint(output, err)
}

// complaint returns the messages of a parser that prints none for a valid file.
func complaint(output []byte, err error) string {
	output = bytes.TrimSpace(output)
	if err != nil {
		return fmt.Sprintf("%s\n%v", output, err)
	}
	return string(output)
}

// linkNames matches "interface eth0" of an instance and "dev eth0" of an address.
var linkNames = regexp.MustCompile(`(?m)(?:^\s*interface|\sdev)\s+"?([^\s"]+)`)

// linksOf returns the links named by a configuration, except for loopback.
func linksOf(conf []byte) (links []string) {
	for _, match := range linkNames.FindAllSubmatch(conf, -1) {
		if link := string(match[1]); link != "lo" && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	return links
}

// numbered returns text with line numbers, to which messages refer.
func numbered(text []byte) string {
	var out bytes.Buffer
	for i, line := range bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n")) {
		fmt.Fprintf(&out, "%4d  %s\n", i+1, line)
	}
	return out.String()
}
