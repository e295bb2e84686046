package ignition

import "strings"

// notes lists what a config has besides files and units, in a fixed order.
// Of users, proxies and certificates it says that they are there, since what
// they hold may be secret.
func (c config) notes(doc *Document) {
	for _, r := range c.Ignition.Config.Merge {
		doc.note("merges %s (not fetched)", remoteName(r.Source))
	}
	for _, r := range c.Ignition.Config.Append {
		doc.note("appends %s (not fetched)", remoteName(r.Source))
	}
	if r := c.Ignition.Config.Replace; r != nil && r.Source != nil {
		doc.note("is replaced by %s (not fetched)", remoteName(r.Source))
	}
	if len(c.Ignition.Proxy) > 0 {
		doc.note("sets a proxy for fetching")
	}
	if n := len(c.Ignition.Security.TLS.CertificateAuthorities); n > 0 {
		doc.note("certificate authorities for fetching: %d", n)
	}
	doc.noteList("kernel arguments", c.KernelArguments.ShouldExist)
	doc.noteList("kernel arguments removed", c.KernelArguments.ShouldNotExist)
	doc.noteNames("users", c.Passwd.Users)
	doc.noteNames("groups", c.Passwd.Groups)
	doc.noteNames("disks", c.Storage.Disks)
	doc.noteNames("RAID", c.Storage.Raid)
	doc.noteNames("LUKS volumes", c.Storage.Luks)
	doc.noteNames("filesystems", c.Storage.Filesystems)
	for _, n := range c.Storage.Directories {
		doc.note("directory %s", n.Path)
	}
	for _, n := range c.Storage.Links {
		doc.note("link %s -> %s", n.Path, n.Target)
	}
	doc.noteNames("networkd units", c.Networkd.Units)
}

func (d *Document) noteNames(what string, things []named) {
	names := make([]string, len(things))
	for i, t := range things {
		names[i] = t.String()
	}
	if len(names) > 0 {
		d.note("%s: %s", what, strings.Join(names, ", "))
	}
}
