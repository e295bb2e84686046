package ignition

import "fmt"

// Document is one MachineConfig or Ignition config, decoded.
type Document struct {
	// Source says what it is: "MachineConfig 99-master-vipgen" or
	// "Ignition 3.2.0".
	Source string
	// Name is that of the MachineConfig, or the file's without folder and
	// suffix.
	Name string
	// Role is the pool. That of an Ignition config is taken from its name and
	// empty if that is not a usual one.
	Role string
	// IgnitionVersion is empty for a MachineConfig without Ignition config.
	IgnitionVersion string
	Files           []DecodedFile
	Units           []Unit
	// Annotations are those of a MachineConfig.
	Annotations map[string]string
	// Spelling has the files of a MachineConfig by their paths, and its units by their
	// names, as it writes them; nothing of one in Ignition 2, which the operator
	// translates.
	Spelling map[string]Spelling
	// Settings are what it has besides files and units, for comparing: the fields
	// of a MachineConfig with their values, parts of an Ignition config with a
	// digest, as they may hold secrets. What is not there is missing.
	Settings map[string]string
	// Notes say what it has besides, a line each, in the order of the
	// document. They hold no key, password hash, token or file contents.
	Notes []string
}

// DecodedFile is a file with what a Bundle's file has no place for.
type DecodedFile struct {
	File
	// Remote names where the contents come from if they are not in the
	// document, without credentials. They are not fetched.
	Remote string
	// Append says that the contents go to the end of a file that another
	// config, or the operating system, has.
	Append bool
	// Problem says why contents could not be decoded, "" if they could.
	Problem string
}

// Bundle is the part of a document that a bundle can hold: the files whose
// contents are known, the last one of a path, with what is appended to it, and
// all units, the last one of a name.
func (d Document) Bundle() Bundle {
	b := Bundle{Role: d.Role}
	at := map[string]int{}
	for _, f := range d.Files {
		i, known := at[f.Path]
		switch {
		case f.Remote != "" || f.Problem != "":
		case f.Append && known:
			old := b.Files[i].Contents
			b.Files[i].Contents = append(old[:len(old):len(old)], f.Contents...)
		case f.Append:
		case known:
			b.Files[i] = f.File
		default:
			at[f.Path] = len(b.Files)
			b.Files = append(b.Files, f.File)
		}
	}
	unitAt := map[string]int{}
	for _, u := range d.Units {
		if i, known := unitAt[u.Name]; known {
			b.Units[i] = u
			continue
		}
		unitAt[u.Name] = len(b.Units)
		b.Units = append(b.Units, u)
	}
	// No path and no name is there twice, so there is nothing to refuse.
	_ = b.Sort()
	return b
}

func (d *Document) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// setting keeps a value for comparing; nothing where there is none.
func (d *Document) setting(name, value string) {
	if value == "" {
		return
	}
	if d.Settings == nil {
		d.Settings = map[string]string{}
	}
	d.Settings[name] = value
}
