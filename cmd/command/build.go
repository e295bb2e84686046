package command

import "runtime/debug"

// stamped is set where a release is built: by `make build VERSION=v1.2.3`, and
// for images. Go itself knows the version of what `go install` built.
var stamped string

// build is what `version` prints, also as JSON.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// readBuild says what is known of the running program.
func readBuild() build {
	v := build{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
	}
	if stamped != "" {
		v.Version = stamped
	}
	return v
}
