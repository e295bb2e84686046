package v1alpha1

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// ModeFileContent is the content of a mode file: the VRRP settings that a running cluster migrates
// to, where they differ from those of cluster.yaml, and when (seed 004).
type ModeFileContent struct {
	// Mode and Profile default to those of cluster.yaml.
	Mode    Mode    `json:"mode,omitempty"`
	Profile Profile `json:"profile,omitempty"`
	// Version and AdvertInterval are for ProfileCustom only.
	Version        int      `json:"version,omitempty"`
	AdvertInterval Duration `json:"advertInterval,omitzero"`
	// Time is the planned instant; nil leaves it to the nodes.
	Time *time.Time `json:"time,omitempty"`
	// Without names nodes that the others do not wait for, and that take no part as long as
	// they are listed. It may be the only field.
	Without []string `json:"without,omitempty"`
}

// maxModeFile is many times the size of a mode file, in bytes.
const maxModeFile = 4096

// ParseModeFile reads a mode file strictly. The error quotes the invalid part only.
func ParseModeFile(data []byte) (*ModeFileContent, error) {
	if len(data) > maxModeFile {
		return nil, fmt.Errorf("%d bytes, more than %d", len(data), maxModeFile)
	}
	for line := range bytes.Lines(data) {
		// A second document would be ignored silently.
		if bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("...")) {
			return nil, errors.New("more than one YAML document; expected keys such as mode and profile alone")
		}
	}
	m := &ModeFileContent{}
	if err := yaml.UnmarshalStrict(data, m); err != nil {
		return nil, fmt.Errorf("%.200v", err)
	}
	return m, m.validate()
}

func (m *ModeFileContent) validate() error {
	k := &checker{}
	oneOf(k, "mode", m.Mode)
	oneOf(k, "profile", m.Profile)
	switch {
	case k.list.Err() != nil:
		p := k.list[0]
		return fmt.Errorf("%s: found %.50s, expected %s", p.Field, p.Found, p.Expected)
	case m.Mode == "" && m.Profile == "" && m.Version == 0 && m.AdvertInterval == 0 && len(m.Without) == 0:
		return errors.New("mode or profile required")
	case m.Profile != ProfileCustom && (m.Version != 0 || m.AdvertInterval != 0):
		return errors.New("version and advertInterval are for profile custom alone")
	case m.Version != 0 && m.Version != 2 && m.Version != 3:
		return fmt.Errorf("version: found %d, expected 2 or 3", m.Version)
	case m.Time != nil && m.Time.IsZero():
		return errors.New("time: expected an instant, such as 2026-05-02T03:00:00Z")
	}
	for _, name := range m.Without {
		if !ValidName(name) {
			return fmt.Errorf("without: found %.50q, expected the name of a node", name)
		}
	}
	if m.AdvertInterval != 0 {
		if why := AdvertInterval(cmp.Or(m.Version, 3), time.Duration(m.AdvertInterval)); why != "" {
			return fmt.Errorf("advertInterval: found %v, expected %s", m.AdvertInterval, why)
		}
	}
	return nil
}

// Settings returns cluster.yaml's settings with the file's applied.
func (m *ModeFileContent) Settings(s *ClusterConfigSpec) (VRRPSettings, error) {
	said := s.VRRP.Target
	v := VRRP{Mode: cmp.Or(m.Mode, said.Mode), Profile: cmp.Or(m.Profile, said.Profile), Version: m.Version, AdvertInterval: m.AdvertInterval}
	if v.Profile == said.Profile && v.Version == 0 && v.AdvertInterval == 0 {
		said.Mode = v.Mode // with the timing of cluster.yaml
		return said, nil
	}
	if v.Profile == ProfileCustom {
		if v.AdvertInterval == 0 {
			return VRRPSettings{}, errors.New("profile custom: advertInterval is missing, such as 100ms")
		}
		v.Version = cmp.Or(v.Version, 3)
	}
	out := v.Settings()
	if why := out.IPv6Interval(s.Groups); why != "" {
		return VRRPSettings{}, fmt.Errorf("advertInterval: found %v, expected %s", v.AdvertInterval, why)
	}
	return out, nil
}

// Marshal writes a file for ParseModeFile. The bytes depend on the value alone.
func (m *ModeFileContent) Marshal() ([]byte, error) { return yaml.Marshal(m) }

// String returns a form such as "fast/unicast/v3/40ms", equal for equal settings only.
func (v VRRPSettings) String() string {
	return fmt.Sprintf("%s/%s/v%d/%v", v.Profile, v.Mode, v.Version, Millis(v.AdvertIntervalMS))
}
