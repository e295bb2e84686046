package command

import (
	"runtime"
	"testing"
)

func TestReadBuild(t *testing.T) {
	defer func(old string) { stamped = old }(stamped)
	for in, want := range map[string]bool{"v1.2.3": true, "": false} {
		stamped = in
		got := readBuild()
		if got.Go != runtime.Version() || (got.Version == "v1.2.3") != want {
			t.Errorf("%q: %+v", in, got)
		}
	}
}
