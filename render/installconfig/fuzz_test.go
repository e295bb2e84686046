package installconfig_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/installconfig"
)

// inert is the alphabet of every value from a file.
var inert = regexp.MustCompile(`^[A-Za-z0-9._:/\[\]-]*$`)

func checkReport(t *testing.T, data []byte, l problem.List) {
	last := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		last += bytes.Count(data, []byte(end))
	}
	for _, p := range l {
		if p.Line < 1 || p.Line > last || p.Column < 1 || p.File != "f.yaml" || p.Code == "" {
			t.Errorf("a file of %d lines has the problem %q", last, p)
		}
		if bytes.ContainsAny([]byte(p.String()), "\n\r\x1b") {
			t.Errorf("a problem has a line break or a control character: %q", p)
		}
	}
}

func checkHosts(t *testing.T, hosts []installconfig.Host) {
	for _, h := range hosts {
		checkInert(t, h.Name, h.Role)
		for _, a := range h.Addresses {
			if !a.IsValid() || a.Addr().Zone() != "" || a.Addr().IsMulticast() || a.Addr().IsUnspecified() {
				t.Errorf("host address %v", a.Prefix)
			}
		}
	}
}

func checkInert(t *testing.T, all ...string) {
	for _, s := range all {
		if !inert.MatchString(s) {
			t.Errorf("text that is not inert: %q", s)
		}
	}
}

// FuzzReadInstallConfig reads any bytes: nothing panics, problems have a position in the file,
// and the result is inert and usable.
func FuzzReadInstallConfig(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := installconfig.Read("f.yaml", data)
		checkReport(t, data, problems)
		if c == nil {
			if problems.Err() == nil {
				t.Error("no config and no error")
			}
			return
		}
		checkInert(t, c.Name, c.BaseDomain, c.NetworkType, c.Platform, c.LoadBalancer, c.FeatureSet)
		checkHosts(t, c.Hosts)
		for _, m := range c.Mirrors {
			checkInert(t, m.Source)
		}
		for _, p := range c.Compute {
			checkInert(t, p.Name)
			if p.Replicas < 0 {
				t.Errorf("pool with %d replicas", p.Replicas)
			}
		}
		for _, n := range c.MachineNetworks {
			if n.Prefix != n.Masked() {
				t.Errorf("network with host bits %v", n.Prefix)
			}
		}
		for _, vips := range [][]installconfig.Address{c.APIVIPs, c.IngressVIPs} {
			if len(vips) > 2 || len(vips) == 2 && vips[0].Is4() == vips[1].Is4() {
				t.Errorf("VIPs %v", vips)
			}
		}
	})
}

// FuzzReadAgentConfig is FuzzReadInstallConfig for the other file.
func FuzzReadAgentConfig(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := installconfig.ReadAgentConfig("f.yaml", data)
		checkReport(t, data, problems)
		if c == nil {
			return
		}
		checkHosts(t, c.Hosts)
		if ip := c.RendezvousIP; ip != nil && (!ip.IsValid() || ip.Zone() != "" || ip.IsLoopback()) {
			t.Errorf("rendezvous address %v", ip.Addr)
		}
	})
}
