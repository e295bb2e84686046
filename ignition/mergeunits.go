package ignition

import (
	"encoding/json"
	"fmt"
)

func (m *merger) systemd(systemd object, units []Unit) error {
	list, err := systemd.list("units")
	if err != nil {
		return err
	}
	at, err := indexes(list, unitName)
	if err != nil {
		return err
	}
	changed := false
	for i, u := range units {
		j, there := at[u.Name]
		if !there {
			list = append(list, m.units[i])
			changed = true
			continue
		}
		unit, err := m.unit(list[j], u)
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.Name, err)
		}
		if unit != nil {
			list[j] = unit
			changed = true
		}
	}
	if !changed {
		return nil
	}
	m.changed = true
	return systemd.set("units", list)
}

func unitName(n *named) string { return n.Name }

// unit returns the unit of the base with our additions, nil if there are none.
func (m *merger) unit(raw json.RawMessage, ours Unit) (json.RawMessage, error) {
	unit, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	var theirs configUnit
	if err := json.Unmarshal(raw, &theirs); err != nil {
		return nil, err
	}
	want := map[string]any{}
	if ours.Contents != "" && ours.Contents != theirs.Contents {
		if theirs.Contents != "" {
			m.conflict("unit", ours.Name, "its contents differ")
		}
		want["contents"] = ours.Contents
	}
	if ours.Enabled != nil && (theirs.Enabled == nil || *theirs.Enabled != *ours.Enabled) {
		if theirs.Enabled != nil {
			m.conflict("unit", ours.Name, "enabled is %t, not %t", *theirs.Enabled, *ours.Enabled)
		}
		want["enabled"] = *ours.Enabled
	}
	if theirs.Mask {
		m.conflict("unit", ours.Name, "it is masked")
		want["mask"] = false
	}
	dropins, err := m.dropins(unit, ours)
	if err != nil {
		return nil, err
	}
	if dropins != nil {
		want["dropins"] = dropins
	}
	if len(want) == 0 {
		return nil, nil
	}
	for key, value := range want {
		if err := unit.set(key, value); err != nil {
			return nil, err
		}
	}
	return unit.marshal()
}

// dropins returns the drop-ins of both, nil if the base has all of ours.
func (m *merger) dropins(unit object, ours Unit) ([]json.RawMessage, error) {
	list, err := unit.list("dropins")
	if err != nil {
		return nil, err
	}
	at, err := indexes(list, unitName)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, d := range ours.Dropins {
		raw, err := marshalJSON(map[string]string{"name": d.Name, "contents": d.Contents})
		if err != nil {
			return nil, err
		}
		i, there := at[d.Name]
		if !there {
			list = append(list, raw)
			changed = true
			continue
		}
		var theirs Dropin
		if err := json.Unmarshal(list[i], &theirs); err != nil {
			return nil, err
		}
		if theirs.Contents != d.Contents {
			m.conflict("dropin", ours.Name+"/"+d.Name, "its contents differ")
			list[i] = raw
			changed = true
		}
	}
	if !changed {
		return nil, nil
	}
	return list, nil
}
