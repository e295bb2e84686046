package cli

import (
	"strings"
	"testing"
)

// Links, other repositories and hidden files of a revision are left out.
func TestListing(t *testing.T) {
	r := &revision{blobs: map[string]string{}}
	r.parse("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00120000 blob cc\tlink.yaml\x00160000 commit dd\tmodule\x00100644 blob ee\t.hidden/x.yaml\x00100644 blob ff\td/.git.yaml\x00")
	if len(r.blobs) != 2 || r.blobs["x.yaml"] != "aa" || r.blobs["d/y z.yaml"] != "bb" {
		t.Errorf("%v", r.blobs)
	}
}

func FuzzListing(f *testing.F) {
	f.Add("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00")
	f.Fuzz(func(t *testing.T, listing string) {
		r := &revision{blobs: map[string]string{}}
		r.parse(listing)
		for name, object := range r.blobs {
			if strings.ContainsAny(object, " \n\t\x00") {
				t.Errorf("%q: %q", name, object)
			}
		}
	})
}
