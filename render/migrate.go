package render

import (
	"fmt"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Migration is a migration of a running cluster to other VRRP settings (seed 004).
type Migration struct {
	Cluster string `json:"cluster"`
	// From are the settings of the cluster's input, To the new ones.
	From v1alpha1.VRRPSettings `json:"from"`
	To   v1alpha1.VRRPSettings `json:"to"`
	// At is the planned instant; nil leaves it to the nodes.
	At *time.Time `json:"at,omitempty"`
	// Without are nodes that the others do not wait for.
	Without []string `json:"without,omitempty"`
	// OutageMS is the longest time without an answer for clients, in milliseconds: one old
	// advert interval and three new ones, without the longer intervals of many peers.
	OutageMS int `json:"outageMS"`

	file v1alpha1.ModeFileContent
	c    *Cluster
}

// Migrate plans a migration. The error names the part of the mode file that does not fit the cluster.
func (c *Cluster) Migrate(m v1alpha1.ModeFileContent) (*Migration, error) {
	if !c.Config.Spec.ByVRRP() {
		return nil, fmt.Errorf("the nodes of %s hold no VIPs, so there are no VRRP settings to change", c.Config.Metadata.Name)
	}
	text, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if _, err := v1alpha1.ParseModeFile(text); err != nil {
		return nil, err
	}
	to, err := m.Settings(&c.Config.Spec)
	if err != nil {
		return nil, err
	}
	from := c.Config.Spec.VRRP.Target
	return &Migration{
		Cluster: c.Config.Spec.Domain, From: from, To: to, At: m.Time, Without: m.Without,
		OutageMS: from.AdvertIntervalMS + vrrp.MissedAdverts*to.AdvertIntervalMS, file: m, c: c,
	}, nil
}

// ModeFile returns the mode file of all nodes.
func (m *Migration) ModeFile() ([]byte, error) { return m.file.Marshal() }

// Files returns the mode file, and for OpenShift a MachineConfig for each pool with its own
// nodes. Custom pools inherit the worker's.
func (m *Migration) Files() ([]OutputFile, error) {
	text, err := m.ModeFile()
	if err != nil {
		return nil, err
	}
	out := []OutputFile{{Path: "files" + v1alpha1.UserModeFile, Data: text}}
	if m.c.OS != ignition.OpenShift {
		return out, nil
	}
	enc, err := m.c.Encoder()
	if err != nil {
		return nil, err
	}
	for _, role := range m.c.Roles {
		switch role {
		case v1alpha1.RoleMaster, v1alpha1.RoleArbiter, v1alpha1.RoleWorker:
		default:
			continue
		}
		b := ignition.Bundle{Role: role, Files: []ignition.File{{Path: v1alpha1.UserModeFile, Mode: 0o644, Contents: text}}}
		meta := ignition.Metadata{Name: modeMachineConfig(role), Annotations: map[string]string{"vipgen.io/cluster": m.c.Config.Metadata.Name}}
		data, err := enc.MachineConfig(b, meta)
		if err != nil {
			return nil, err
		}
		out = append(out, OutputFile{Path: "machineconfigs/" + meta.Name + ".yaml", Data: data})
	}
	return out, nil
}

// modeMachineConfig returns a name that differs from the pool's own MachineConfig.
func modeMachineConfig(role string) string { return MachineConfigName(role) + ".mode" }

// MachineConfigs returns the names of the MachineConfigs in Files.
func (m *Migration) MachineConfigs() (out []string) {
	for _, role := range m.c.Roles {
		if role == v1alpha1.RoleMaster || role == v1alpha1.RoleArbiter || role == v1alpha1.RoleWorker {
			out = append(out, modeMachineConfig(role))
		}
	}
	return out
}
