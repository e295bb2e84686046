//go:build !linux

package cli

import (
	"errors"
	"io"

	"github.com/vipgen/vipgen/internal/day2/doctor"
)

// doctorPage refuses: timelines are drawn by what draws those of the lab, which is for
// Linux alone.
func doctorPage(io.Writer, *doctor.Report, []doctor.File) error {
	return errors.New("the page with timelines is drawn on Linux only: use -o text or -o json here")
}
