package nodes

import (
	"testing"

	"github.com/vipgen/vipgen/internal/previous"
)

// The recorded nodes are the same bytes as those of the previous version, so that an agent of
// either version that starts without an API server has them.
func TestPreviousVersion(t *testing.T) {
	text := previous.File(t, "node/etc/keepalived/.vipgen-nodes.json")
	s, err := decodeState(text, "demo.example.com")
	if err != nil || len(s.Nodes) != 3 || !s.Bootstrap.Gone {
		t.Fatalf("%+v, error %v", s, err)
	}
	if now, err := s.encode(maxStateBytes); err != nil || string(now) != string(text) {
		t.Errorf("written as %s, before %s, error %v", now, text, err)
	}
}
