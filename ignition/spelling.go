package ignition

import (
	"encoding/json"
	"strings"
)

// Spelling is a file or unit as an Ignition 3 config writes it: a value for each field
// that is there and is not null, such as "mode" and "contents.source". A field that may hold contents or a secret
// has a digest. Two spellings may mean the same: the machine config daemon compares
// spellings (CalculateConfigFileDiffs, GetChangedConfigUnitsByType).
type Spelling map[string]string

// shownFields are those whose values are no contents and no secrets.
var shownFields = map[string]bool{"mode": true, "overwrite": true, "contents.compression": true, "enabled": true, "mask": true}

// Shown returns the value of a field, if it may be shown; "none" for a field that is
// not there.
func (s Spelling) Shown(field string) (value string, ok bool) {
	value, there := s[field]
	if !there {
		value = "none"
	}
	return value, shownFields[field]
}

// spellings returns the spelling of each file, by path, and unit, by name, of an Ignition 3 config.
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

// add spells fields; objects and lists of named objects field by field, as Ignition
// merges them.
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
			_ = json.Unmarshal(element["name"], &name) // Ignition takes nothing else
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
