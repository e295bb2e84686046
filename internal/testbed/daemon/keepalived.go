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

// Keepalived fails the test unless keepalived's own parser (keepalived -t)
// accepts conf without a word. The interfaces that conf names exist while it
// looks, as they would on the node.
//
// keepalived 2.2.7 exits with 0 and prints a blank line for what it accepts. It
// exits with 5 and names the line for everything else, mere warnings included:
// an unknown keyword, a number out of range, an interface that is not there,
// authentication under VRRPv3, a password that it would cut to 8 bytes, a track
// file that is used and not defined, empty unicast peers (it would fall back to
// multicast), a missing brace. It exits with 6 for scripts without
// enable_script_security. An include that finds no file is the one complaint
// for which it exits with 0, so any output at all is taken as a refusal. With a
// vrrp_script it ends itself by SIGTERM when it has said what it has to say, also
// where that is nothing.
//
// It looks at the configuration alone: whether unicast_src_ip is an address of
// the interface, whether a peer is the node itself and whether the directory of
// a track file exists is not checked, and init_file creates nothing.
func Keepalived(t testing.TB, conf []byte) { t.Helper(); Installed.CheckKeepalived(t, conf) }

// CheckKeepalived is Keepalived with the generation's.
func (g Generation) CheckKeepalived(t testing.TB, conf []byte) {
	t.Helper()
	if complaint := g.checkKeepalived(t, conf); complaint != "" {
		t.Errorf("keepalived refuses the configuration:\n%s\n%s", complaint, numbered(conf))
	}
}

// checkKeepalived returns what keepalived has against conf, nothing if it
// accepts it.
func checkKeepalived(t testing.TB, conf []byte) string {
	t.Helper()
	return Installed.checkKeepalived(t, conf)
}

func (g Generation) checkKeepalived(t testing.TB, conf []byte) string {
	t.Helper()
	keepalived := g.program(t, "keepalived")
	s := newSandboxOf(t, g)
	s.write(t, keepalivedConf, conf)
	s.mkdirsOfTrackFiles(t, conf) // which 2.3 looks for
	cmd := s.parser(linksOf(conf), keepalived, "-t", "-f", keepalivedConf)
	output, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM && bytes.Contains(conf, []byte("vrrp_script ")) {
		err = nil
	}
	return complaint(output, err)
}

// complaint sums up a parser that says nothing about what it accepts.
func complaint(output []byte, err error) string {
	output = bytes.TrimSpace(output)
	if err != nil {
		return fmt.Sprintf("%s\n%v", output, err)
	}
	return string(output)
}

// linkNames finds "interface eth0" of an instance and "dev eth0" of an address.
var linkNames = regexp.MustCompile(`(?m)(?:^\s*interface|\sdev)\s+"?([^\s"]+)`)

// linksOf returns the links that a configuration names, but for loopback.
func linksOf(conf []byte) (links []string) {
	for _, match := range linkNames.FindAllSubmatch(conf, -1) {
		if link := string(match[1]); link != "lo" && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	return links
}

// numbered returns text with its line numbers, which complaints refer to.
func numbered(text []byte) string {
	var out bytes.Buffer
	for i, line := range bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n")) {
		fmt.Fprintf(&out, "%4d  %s\n", i+1, line)
	}
	return out.String()
}
