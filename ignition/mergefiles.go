package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

func (m *merger) storage(storage object, files []File) error {
	list, err := storage.list("files")
	if err != nil {
		return err
	}
	before := len(list)
	at, err := indexes(list, nodePath)
	if err != nil {
		return err
	}
	replaced := false
	for i, f := range files {
		j, there := at[f.Path]
		if !there {
			list = append(list, m.files[i])
			continue
		}
		difference, err := m.differs(list[j], f)
		if err != nil {
			return err
		}
		if difference != "" {
			m.conflict("file", f.Path, "%s", difference)
			list[j] = m.files[i]
			replaced = true
		}
	}
	if len(list) > before || replaced {
		m.changed = true
		if err := storage.set("files", list); err != nil {
			return err
		}
	}
	if err := m.removeReplaced(storage, "directories", "directory", files); err != nil {
		return err
	}
	return m.removeReplaced(storage, "links", "link", files)
}

func (m *merger) removeReplaced(storage object, key, kind string, files []File) error {
	list, err := storage.list(key)
	if err != nil {
		return err
	}
	at, err := indexes(list, nodePath)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, f := range files {
		ours[f.Path] = true
		if _, there := at[f.Path]; there {
			m.conflict(kind, f.Path, "a file is to be there")
		}
	}
	kept := slices.DeleteFunc(list, func(raw json.RawMessage) bool {
		var n node
		return json.Unmarshal(raw, &n) == nil && ours[n.Path]
	})
	if len(kept) == len(at) {
		return nil
	}
	return storage.set(key, kept)
}

func nodePath(n *node) string { return n.Path }

func indexes[T any](list []json.RawMessage, name func(*T) string) (map[string]int, error) {
	at := map[string]int{}
	for i, raw := range list {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		at[name(&v)] = i
	}
	return at, nil
}

// differs describes how a file of the base differs from ours on the node, or returns "".
func (m *merger) differs(raw json.RawMessage, f File) (string, error) {
	var c configFile
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", err
	}
	var parts []json.RawMessage
	if len(c.Append) > 0 && json.Unmarshal(c.Append, &parts) == nil && len(parts) > 0 {
		return "parts are appended to it", nil
	}
	if c.Contents.Source == nil {
		return "it has no contents", nil
	}
	theirs := m.decodeFile(c.node, c.Contents, false)
	switch {
	case theirs.Remote != "":
		return "its contents come from " + theirs.Remote, nil
	case theirs.Problem != "":
		return theirs.Problem, nil
	case !bytes.Equal(theirs.Contents, f.Contents):
		return "its contents differ", nil
	case theirs.Mode != f.Mode:
		return fmt.Sprintf("mode %#o, not %#o", theirs.Mode, f.Mode), nil
	case c.owners() != "":
		return "it belongs to " + c.owners() + ", not to root", nil
	}
	return "", nil
}
