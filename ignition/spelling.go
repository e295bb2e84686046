package ignition

import (
	"encoding/json"
	"strings"
)

// Spelling is a file or unit as an Ignition 3 config spells it: a value for each field that is
// present and not null, such as "mode" and "contents.source". Fields that may hold contents or
// a secret have a digest. Two spellings may have one meaning: the machine config daemon
// compares spellings (CalculateConfigFileDiffs, GetChangedConfigUnitsByType).
type Spelling map[string]string

// shownFields are the fields without contents and secrets.
var shownFields = map[string]bool{"mode": true, "overwrite": true, "contents.compression": true, "enabled": true, "mask": true}

// Shown returns the value of a field if it may be shown; "none" for a missing field.
func (s Spelling) Shown(field string) (value string, ok bool) {
	value, there := s[field]
	if !there {
		value = "none"
	}
	return value, shownFields[field]
}

// spellings returns the spellings of the files, by path, and units, by name, of an Ignition 3
// config.
func spellings(raw json.RawMessage) map[string]Spelling {
	var c struct {
		Storage struct {
			Files []map[string]json.RawMessage `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []map[string]json.RawMessage `json:"units"`
		} `json:"systemd"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return nil
	}
	out := map[string]Spelling{}
	for key, list := range map[string][]map[string]json.RawMessage{"path": c.Storage.Files, "name": c.Systemd.Units} {
		for _, fields := range list {
			s := Spelling{}
			s.add("", fields)
			var name string
			if json.Unmarshal(fields[key], &name) == nil {
				out[name] = s
			}
		}
	}
	return out
}

// add adds fields; objects and lists of named objects field by field, as Ignition merges them.
func (s Spelling) add(prefix string, fields map[string]json.RawMessage) {
	for name, raw := range fields {
		s.value(prefix+name, raw)
	}
}

func (s Spelling) value(field string, raw json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil && fields != nil {
		s.add(field+".", fields)
		return
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0]["name"] != nil {
		for _, element := range list {
			var name string
			_ = json.Unmarshal(element["name"], &name) // Ignition accepts nothing else
			s.add(field+"["+name+"].", element)
		}
		return
	}
	text := strings.TrimSpace(string(raw))
	if !shownFields[field] {
		text = digest(raw)
	}
	if text != "" && text != "null" {
		s[field] = text
	}
}
