package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestTransitions(t *testing.T) {
	disk, rights := errors.New("disk full"), errors.New("permission denied")
	tests := []struct {
		name string
		in   []error
		want string
	}{
		{"all is well", []error{nil, nil}, ""},
		{"it goes on", []error{disk, disk, errors.New("disk full")}, "level=ERROR msg=lost error=\"disk full\" file=f\n"},
		{"it turns into something else", []error{disk, rights, rights},
			"level=ERROR msg=lost error=\"disk full\" file=f\nlevel=ERROR msg=lost error=\"permission denied\" file=f\n"},
		{"it ends, and begins again", []error{disk, nil, nil, disk},
			"level=ERROR msg=lost error=\"disk full\" file=f\nlevel=INFO msg=kept file=f\nlevel=ERROR msg=lost error=\"disk full\" file=f\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
			var x Transitions
			for _, err := range tt.in {
				x.Error(log, err, "lost", "kept", "file", "f")
			}
			testkit.Equal(t, tt.want, out.String())
		})
	}
}
