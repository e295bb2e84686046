package installconfig

import (
	"fmt"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
)

// repository matches a registry with an optional port and the path of a repository, without tag
// or digest.
var repository = lazy.Regexp(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?` +
	`(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$`)

const repositoryRule = "an image repository, such as registry.example.com:5000/ocp/release"

// mirrors reads imageDigestSources, or imageContentSources, its name before
// 4.13. The installer refuses a file that has both.
func (r *reader) mirrors(c *InstallConfig, in *file) {
	const current, old = "imageDigestSources", "imageContentSources"
	list, field := in.ImageDigestSources, current
	if len(in.ImageContentSources) > 0 {
		r.deprecated(old, "an old spelling", current)
		if len(list) > 0 {
			r.add(problem.ConflictingFields, old, "mirrors here and in "+current, "one of the two", "")
		} else {
			list, field = in.ImageContentSources, old
		}
	}
	for i, m := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if m.Source == "" {
			r.missing(at+".source", repositoryRule, at)
			continue
		}
		mirror := Mirror{Field: at}
		if r.repository(at+".source", m.Source) {
			mirror.Source = m.Source
		}
		for j, name := range m.Mirrors {
			r.repository(fmt.Sprintf("%s.mirrors[%d]", at, j), name)
		}
		if mirror.Source != "" {
			c.Mirrors = append(c.Mirrors, mirror)
		}
	}
}

func (r *reader) repository(field, name string) bool {
	if r.refused[field] {
		return false
	}
	if len(name) > 255 || !repository().MatchString(name) {
		r.add(problem.BadImage, field, problem.Quote(name), repositoryRule, "")
		return false
	}
	return true
}
