package ignition

import "github.com/vipgen/vipgen/internal/lists"

// notes lists everything in a config besides files and units, in a fixed order. Users, proxies
// and certificates are counted only, since their content may be secret.
func (c config) notes(doc *Document) {
	for _, r := range c.Ignition.Config.Merge {
		doc.addNote("merges %s (not fetched)", remoteName(r.Source))
	}
	for _, r := range c.Ignition.Config.Append {
		doc.addNote("appends %s (not fetched)", remoteName(r.Source))
	}
	if r := c.Ignition.Config.Replace; r != nil && r.Source != nil {
		doc.addNote("is replaced by %s (not fetched)", remoteName(r.Source))
	}
	if len(c.Ignition.Proxy) > 0 {
		doc.addNote("sets a proxy for fetching")
	}
	if n := len(c.Ignition.Security.TLS.CertificateAuthorities); n > 0 {
		doc.addNote("certificate authorities for fetching: %d", n)
	}
	doc.addListNote("kernel arguments", c.KernelArguments.ShouldExist)
	doc.addListNote("kernel arguments removed", c.KernelArguments.ShouldNotExist)
	doc.addNamesNote("users", c.Passwd.Users)
	doc.addNamesNote("groups", c.Passwd.Groups)
	doc.addNamesNote("disks", c.Storage.Disks)
	doc.addNamesNote("RAID", c.Storage.Raid)
	doc.addNamesNote("LUKS volumes", c.Storage.Luks)
	doc.addNamesNote("filesystems", c.Storage.Filesystems)
	for _, n := range c.Storage.Directories {
		doc.addNote("directory %s", n.Path)
	}
	for _, n := range c.Storage.Links {
		doc.addNote("link %s -> %s", n.Path, n.Target)
	}
	doc.addNamesNote("networkd units", c.Networkd.Units)
}

func (d *Document) addNamesNote(what string, things []named) {
	if len(things) > 0 {
		d.addNote("%s: %s", what, lists.Join(things, ", "))
	}
}
