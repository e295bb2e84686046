package command

import "runtime/debug"

// stamped is set in builds of releases: by `make build VERSION=v1.2.3`, and for images. Go
// itself knows the version of a `go install`.
var stamped string

// stampedRevision is the commit, which Go itself knows only of builds in a clone without
// -buildvcs=false.
var stampedRevision string

// Build is the output of `version`, also as JSON.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

// Version returns the version of the running program, "unknown" where it was built without one.
func Version() string { return readBuild().Version }

// Revision returns the commit of the running program, with "-dirty" if files were changed
// since; "unknown" where it was not built in a clone.
func Revision() string { return readBuild().Revision }

func readBuild() Build {
	v := Build{Version: "unknown", Revision: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				v.Revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				v.Revision += "-dirty"
			}
		}
	}
	if stampedRevision != "" {
		v.Revision = stampedRevision
	}
	if stamped != "" {
		v.Version = stamped
	}
	return v
}
