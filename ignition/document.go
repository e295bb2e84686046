package ignition

import "fmt"

// Document is a decoded MachineConfig or Ignition config.
type Document struct {
	// Source is a description: "MachineConfig 99-master-vipgen" or "Ignition 3.2.0".
	Source string
	// Name is the MachineConfig's, or the file's without folder and suffix.
	Name string
	// Role is the pool. For an Ignition config it is derived from its name, and empty if that
	// is not a usual one.
	Role string
	// IgnitionVersion is empty for a MachineConfig without Ignition config.
	IgnitionVersion string
	Files           []DecodedFile
	Units           []Unit
	// Annotations are a MachineConfig's.
	Annotations map[string]string
	// Spelling maps the paths of a MachineConfig's files and the names of its units to their
	// spelling; nil for Ignition 2, which the operator translates.
	Spelling map[string]Spelling
	// Settings holds everything besides files and units, for comparing: the fields of a
	// MachineConfig with their values, parts of an Ignition config with a digest, as they may
	// hold secrets. Empty settings are missing.
	Settings map[string]string
	// Notes describe everything else, a line each, in the order of the document. They hold no
	// key, password hash, token or file contents.
	Notes []string
}

// DecodedFile is a file with the attributes that a Bundle's file lacks.
type DecodedFile struct {
	File
	// Remote is the source of contents that are not in the document, without credentials. They
	// are not fetched.
	Remote string
	// Append is set where the contents are appended to a file of another config, or of the
	// operating system.
	Append bool
	// Problem is the reason why contents could not be decoded, or "".
	Problem string
}

// Bundle returns the part of a document that a bundle can hold: the files with known contents,
// the last of each path, with appended parts, and all units, the last of each name.
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
	// Paths and names are unique, so it cannot fail.
	_ = b.Sort()
	return b
}

func (d *Document) addNote(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// addSetting stores a non-empty value for comparing.
func (d *Document) addSetting(name, value string) {
	if value == "" {
		return
	}
	if d.Settings == nil {
		d.Settings = map[string]string{}
	}
	d.Settings[name] = value
}
