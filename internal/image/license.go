package image

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Names of licence files in modules, and of files that go with them.
var (
	licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|copyright|patents)([-._].*)?$`)
)

// licenses adds the licences of modules to the image, below dir, and returns them by module
// path. Sources are the modules' directories. A module without a licence file is an error: it
// could not be shipped.
func licenses(r *Rootfs, dir string, sources map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, module := range slices.Sorted(maps.Keys(sources)) {
		entries, err := os.ReadDir(sources[module])
		if err != nil {
			return nil, err
		}
		known := map[string]bool{}
		found := false
		for _, e := range entries {
			isLicense := licenseFile.MatchString(e.Name())
			if !e.Type().IsRegular() || !isLicense && !noticeFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(sources[module], e.Name()))
			if err != nil {
				return nil, err
			}
			if err := r.Add(File{Path: path.Join(dir, module, e.Name()), Mode: 0o644, Data: text}); err != nil {
				return nil, err
			}
			if !isLicense {
				continue
			}
			found = true
			for _, id := range identify(text) {
				known[id] = true
			}
		}
		if !found {
			return nil, fmt.Errorf("module %s has no licence file in %s", module, sources[module])
		}
		out[module] = strings.Join(slices.Sorted(maps.Keys(known)), " AND ")
	}
	return out, nil
}

// identify returns the SPDX names of the licences that make up most of a text; nil if there is
// much else in it.
func identify(text []byte) []string {
	c := licensecheck.Scan(text)
	if c.Percent < 75 {
		return nil
	}
	var out []string
	for _, m := range c.Match {
		if !m.IsURL {
			out = append(out, m.ID)
		}
	}
	return out
}
