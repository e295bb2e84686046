package ignition

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Names of settings: fields of a MachineConfig's spec.
const (
	SettingKernelArguments = "kernelArguments"
	SettingExtensions      = "extensions"
	SettingFIPS            = "fips"
	SettingKernelType      = "kernelType"
	SettingOSImage         = "osImageURL"
	SettingExtensionsImage = "baseOSExtensionsContainerImage"
)

// SettingUsers are users and their SSH keys, the one part of an Ignition config
// besides files and units that the operator changes on a running node.
const SettingUsers = "passwd.users"

// SettingMasks are the masked units.
const SettingMasks = "systemd.units.mask"

// sections are the parts of an Ignition config that are settings, by the object
// that holds them.
var sections = map[string][]string{
	"passwd":   {"users", "groups"},
	"networkd": {"units"},
	"storage":  {"disks", "raid", "luks", "filesystems", "directories", "links"},
}

// settings keeps a digest of every part that is there, and the masked units.
func (c config) settings(raw json.RawMessage, doc *Document) {
	var top map[string]json.RawMessage
	_ = json.Unmarshal(raw, &top) // it has been read before
	doc.setting("ignition."+SettingKernelArguments, digest(top["kernelArguments"]))
	for object, parts := range sections {
		var o map[string]json.RawMessage
		_ = json.Unmarshal(top[object], &o) // what is no object has no parts
		for _, part := range parts {
			doc.setting(object+"."+part, digest(o[part]))
		}
	}
	var masked []string
	for _, u := range c.Systemd.Units {
		if u.Mask {
			masked = append(masked, u.Name)
		}
	}
	doc.setting(SettingMasks, strings.Join(masked, " "))
}

// digest is that of JSON whatever its spelling, "" of what is empty.
func digest(part json.RawMessage) string {
	var v any
	if len(part) == 0 || json.Unmarshal(part, &v) != nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil || bytes.Equal(text, []byte("null")) || bytes.Equal(text, []byte("[]")) || bytes.Equal(text, []byte("{}")) {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
