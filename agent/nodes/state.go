package nodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Limits of the file of the last known state: Kubernetes supports 5,000 nodes,
// each of which takes about a kilobyte.
const (
	stateVersion  = 1
	maxStateBytes = 16 << 20
	maxStateNodes = 10_000
)

// state is the last known state as it is on disk. It holds no time: what it says
// is as old as its last change, and it is replaced by what the API says.
type state struct {
	Version int `json:"version"`
	// Cluster keeps the state of another cluster from being used.
	Cluster   string    `json:"cluster"`
	Bootstrap Bootstrap `json:"bootstrap,omitzero"`
	Nodes     []*record `json:"nodes"`
}

func (s state) encode() ([]byte, error) {
	s.Version = stateVersion
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if data = append(data, '\n'); len(data) > maxStateBytes {
		return nil, fmt.Errorf("%d bytes, more than %d", len(data), maxStateBytes)
	}
	return data, nil
}

// selected are the records with the labels that are wanted alone. With all of
// them, reading the file would take most of the time to a first configuration.
func selected(nodes []*record, wanted func(key string) bool) []*record {
	out := make([]*record, 0, len(nodes))
	for _, r := range nodes {
		c := *r
		c.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l label) bool { return !wanted(l.Key) })
		out = append(out, &c)
	}
	return out
}

// decodeState reads what encode made for the same cluster. What comes from
// the disk ends up in the daemons' configuration, so all of it must be valid.
func decodeState(data []byte, cluster string) (s state, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return state{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return state{}, errors.New("something follows the state")
	}
	switch {
	case s.Version != stateVersion:
		return state{}, fmt.Errorf("version %d, not %d", s.Version, stateVersion)
	case s.Cluster != cluster:
		return state{}, fmt.Errorf("it is of cluster %q, not %q", s.Cluster, cluster)
	case len(s.Nodes) > maxStateNodes:
		return state{}, fmt.Errorf("%d nodes, more than %d", len(s.Nodes), maxStateNodes)
	}
	if b := s.Bootstrap; b.Address.IsValid() && !usable(b.Address) {
		return state{}, fmt.Errorf("bootstrap %v: not the address of a host", b.Address)
	}
	valid := map[label]bool{} // nodes have most of them in common
	for i, r := range s.Nodes {
		if r == nil {
			return state{}, fmt.Errorf("node %d is null", i)
		}
		if i > 0 && r.Name <= s.Nodes[i-1].Name {
			return state{}, fmt.Errorf("node %q is not after %q", r.Name, s.Nodes[i-1].Name)
		}
		if err := r.check(valid); err != nil {
			return state{}, fmt.Errorf("node %q: %w", r.Name, err)
		}
	}
	return s, nil
}

// check says what is wrong with a record. It asks valid about labels that it saw
// before.
func (r *record) check(valid map[label]bool) error {
	if !v1alpha1.ValidName(r.Name) {
		return errors.New("not a valid name")
	}
	for _, a := range append(slices.Clone(r.Addresses), r.Host...) {
		if !usable(a) {
			return fmt.Errorf("address %v: not a node's", a)
		}
	}
	if !slices.IsSortedFunc(r.Host, netip.Addr.Compare) {
		return errors.New("host addresses are not sorted")
	}
	for _, n := range r.Networks {
		if !n.IsValid() {
			return errors.New("one of its networks is not valid")
		}
	}
	for _, l := range r.Labels {
		if valid[l] {
			continue
		}
		if !v1alpha1.ValidLabelKey(l.Key) || !v1alpha1.ValidLabelValue(l.Value) {
			return fmt.Errorf("label %q=%q is not valid", l.Key, l.Value)
		}
		valid[l] = true
	}
	if !VRRPText(r.VRRP) {
		return errors.New("what it says of how it elects is not valid")
	}
	for _, s := range []string{r.Update.CurrentConfig, r.Update.DesiredConfig, r.Update.State, r.Update.KubeletVersion} {
		if len(s) > 253 || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
			return fmt.Errorf("%q is not valid in an update", s)
		}
	}
	return nil
}

// readState reads the file of the last known state; none is no error.
func readState(path, cluster string) (s state, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err == nil && len(data) > maxStateBytes {
		err = fmt.Errorf("more than %d bytes", maxStateBytes)
	}
	if err != nil {
		return s, err
	}
	return decodeState(data, cluster)
}
