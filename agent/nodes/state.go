package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"github.com/vipgen/vipgen/agent/nodelist"
)

const (
	stateVersion = 1
	// maxStateBytes bounds the file of the last known state: Kubernetes supports
	// 5,000 nodes, each of which takes about a kilobyte.
	maxStateBytes = 16 << 20
)

// state is the last known state on disk. It holds no time: it is as old as its last
// change, and the API replaces it.
type state struct {
	Version int `json:"version"`
	// Cluster prevents the use of another cluster's state.
	Cluster   string             `json:"cluster"`
	Bootstrap nodelist.Bootstrap `json:"bootstrap,omitzero"`
	Nodes     []*record          `json:"nodes"`
}

// encode encodes the state for decodeState. Nodes beyond maxBytes are left out, the
// largest first.
func (s state) encode(maxBytes int) ([]byte, error) {
	s.Version = stateVersion
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if excess := len(data) + 1 - maxBytes; excess > 0 {
		if s.Nodes, err = dropLargest(s.Nodes, excess); err != nil {
			return nil, err
		}
		if data, err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	return append(data, '\n'), nil
}

// dropLargest removes the largest records until they free at least excess bytes.
func dropLargest(nodes []*record, excess int) ([]*record, error) {
	size := make(map[*record]int, len(nodes))
	for _, r := range nodes {
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		size[r] = len(data)
	}
	bySize := slices.Clone(nodes)
	slices.SortStableFunc(bySize, func(a, b *record) int { return size[b] - size[a] })
	drop := map[*record]bool{}
	for _, r := range bySize {
		if excess <= 0 {
			break
		}
		drop[r] = true
		excess -= size[r]
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(r *record) bool { return drop[r] }), nil
}

// withLabels returns the records with wanted labels only. With all labels, reading the
// file would take most of the time to a first configuration.
func withLabels(nodes []*record, wanted func(key string) bool) []*record {
	out := make([]*record, 0, len(nodes))
	for _, r := range nodes {
		c := *r
		c.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l label) bool { return !wanted(l.Key) })
		out = append(out, &c)
	}
	return out
}

type stored struct {
	record
	err error // why the record is invalid
}

// UnmarshalJSON implements json.Unmarshaler. It never fails, so that the other records
// are read too.
func (s *stored) UnmarshalJSON(data []byte) error {
	s.err = json.Unmarshal(data, &s.record)
	return nil
}

// decodeState decodes the state of a cluster. The content ends up in the daemons'
// configuration, so invalid parts are left out (record.sanitize); err lists them, or
// reports why nothing was usable.
func decodeState(data []byte, cluster string) (s state, err error) {
	var file struct {
		state
		Nodes []stored `json:"nodes"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return state{}, err
	}
	switch s = file.state; {
	case s.Version != stateVersion:
		return state{}, fmt.Errorf("version %d, not %d", s.Version, stateVersion)
	case s.Cluster != cluster:
		return state{}, fmt.Errorf("cluster %.100q, not %q", s.Cluster, cluster)
	}
	var bad []string
	if b := s.Bootstrap; b.Address.IsValid() && !usable(b.Address) {
		bad = append(bad, fmt.Sprintf("bootstrap %.80s: not the address of a host", b.Address))
		s.Bootstrap.Address = netip.Addr{}
	}
	last := ""
	for i := range file.Nodes {
		r := &file.Nodes[i].record
		switch err := file.Nodes[i].err; {
		case err != nil:
			bad = append(bad, fmt.Sprintf("node %d: %.100v", i, err))
			continue
		case r.Name <= last:
			bad = append(bad, fmt.Sprintf("node %d: %.80q is not after %.80q", i, r.Name, last))
			continue
		}
		r.sanitize()
		last = r.Name
		s.Nodes = append(s.Nodes, r)
	}
	s.Nodes, _, err = validRecords(s.Nodes)
	if len(bad) > 0 {
		err = errors.Join(errors.New(summarize(bad)), err)
	}
	return s, err
}

// readState reads and decodes a state file. A missing file is no error.
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
