package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object is a JSON object that keeps its values as written.
type object map[string]json.RawMessage

// mergedKeys are the keys that merging reads or writes.
var mergedKeys = []string{"storage", "files", "directories", "links", "path", "systemd", "units", "name", "contents", "enabled", "mask", "dropins"}

// parseObject parses one level of JSON. It rejects what readers of JSON resolve differently: a
// duplicate key, and a key that differs from Ignition's in case, which Ignition accepts.
func parseObject(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, _ := dec.Token(); t != json.Delim('{') {
		return nil, fmt.Errorf("found %v, expected an object", t)
	}
	o := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string) // keys are always strings
		if _, twice := o[key]; twice {
			return nil, fmt.Errorf("key %q twice", key)
		}
		if i := slices.IndexFunc(mergedKeys, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 && mergedKeys[i] != key {
			return nil, fmt.Errorf("key %q should be %q", key, mergedKeys[i])
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o[key] = value
	}
	return o, nil
}

// has reports whether a key has a value other than null.
func (o object) has(key string) bool {
	return len(o[key]) > 0 && string(o[key]) != "null"
}

// change applies f to a nested object, created if missing.
func (o object) change(key string, f func(object) error) error {
	inner := object{}
	if o.has(key) {
		var err error
		if inner, err = parseObject(o[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if err := f(inner); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return o.set(key, inner)
}

// list returns a list; a missing one is empty.
func (o object) list(key string) (elements []json.RawMessage, err error) {
	if !o.has(key) {
		return nil, nil
	}
	if err := json.Unmarshal(o[key], &elements); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return elements, nil
}

func (o object) set(key string, value any) error {
	raw, err := marshalJSON(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	o[key] = raw
	return nil
}

// marshal writes the object on one line with sorted keys, as installers do.
func (o object) marshal() ([]byte, error) { return marshalJSON(o) }

// marshalJSON keeps raw values as written; json.Marshal would escape <, > and & in them.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
