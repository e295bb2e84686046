package command

import (
	"runtime"
	"testing"
)

func TestReadBuild(t *testing.T) {
	defer func(a, b string) { stamped, stampedRevision = a, b }(stamped, stampedRevision)
	for in, want := range map[string]bool{"v1.2.3": true, "": false} {
		stamped, stampedRevision = in, in
		got := readBuild()
		if got.Revision == "" || (got.Revision == in) != want || got.Go != runtime.Version() || (got.Version == "v1.2.3") != want {
			t.Errorf("%q: %+v", in, got)
		}
	}
}
