package cli

import (
	"os"
	"testing"
)

// TestMain keeps tests out of the cache directory of whoever runs them; those of
// the cache have one of their own.
func TestMain(m *testing.M) {
	os.Setenv("VIPGEN_CACHE", "off")
	os.Exit(m.Run())
}
