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

// SettingUsers are users and their SSH keys, the only part of an Ignition config besides files
// and units that the operator changes on a running node.
const SettingUsers = "passwd.users"

const SettingMasks = "systemd.units.mask"

// sections lists the parts of an Ignition config that are settings, by their parent.
var sections = map[string][]string{
	"passwd":   {"users", "groups"},
	"networkd": {"units"},
	"storage":  {"disks", "raid", "luks", "filesystems", "directories", "links"},
}

// settings stores a digest of every such part, and the masked units.
func (c config) settings(raw json.RawMessage, doc *Document) {
	var top map[string]json.RawMessage
	_ = json.Unmarshal(raw, &top) // it was parsed before
	doc.addSetting("ignition."+SettingKernelArguments, digest(top["kernelArguments"]))
	for object, parts := range sections {
		var o map[string]json.RawMessage
		_ = json.Unmarshal(top[object], &o) // a value that is no object has no parts
		for _, part := range parts {
			doc.addSetting(object+"."+part, digest(o[part]))
		}
	}
	var masked []string
	for _, u := range c.Systemd.Units {
		if u.Mask {
			masked = append(masked, u.Name)
		}
	}
	doc.addSetting(SettingMasks, strings.Join(masked, " "))
}

// digest returns a digest of JSON that does not depend on spelling, "" for an empty value.
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
