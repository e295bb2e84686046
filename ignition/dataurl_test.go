package ignition

import (
	"bytes"
	"testing"

	"github.com/coreos/butane/base/util"
	"github.com/vincent-petithory/dataurl"
)

// FuzzDataURL checks that the encoding equals Butane's, and that Ignition's library decodes it.
func FuzzDataURL(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, s := range []string{"", "a", "a b", "a b ", "ab  ", "abcdefghi  ", "abcdefghijkl    ", "%41", "ünï", string(all), "a: b\n- c\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, contents []byte) {
		got := dataURL(contents)
		want, _, err := util.MakeDataURL(contents, nil, false)
		if err != nil || got != want {
			t.Fatalf("got %s, Butane %s %v", got, want, err)
		}
		back, err := dataurl.DecodeString(got)
		if err != nil || !bytes.Equal(back.Data, contents) {
			t.Fatalf("%s reads as %q %v, want %q", got, back, err, contents)
		}
	})
}
