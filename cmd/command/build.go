package command

import "runtime/debug"

// stamped is set where a release is built: by `make build VERSION=v1.2.3`, and
// for images. Go itself knows the version of what `go install` built.
var stamped string

// Build is what `version` prints, also as JSON.
type Build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Version is that of the running program, "unknown" where it was built without one.
func Version() string { return readBuild().Version }

// readBuild says what is known of the running program.
func readBuild() Build {
	v := Build{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
	}
	if stamped != "" {
		v.Version = stamped
	}
	return v
}
