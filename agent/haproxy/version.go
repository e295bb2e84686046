package haproxy

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/lazy"
)

// versionLine matches HAProxy's version; 2.2 calls itself HA-Proxy.
var versionLine = lazy.Regexp(`(?m)^HA-?Proxy version (\d+\.\d+)`)

// version returns the version of the HAProxy in this container, such as "2.6", so that it
// gets only known keywords (hard case 29), whatever release the cluster was rendered for.
func version(ctx context.Context, bin string) (string, error) {
	out, err := supervise.Output(ctx, bin, "-v")
	if err != nil {
		return "", fmt.Errorf("%s -v: %w", bin, err)
	}
	return parseVersion(out)
}

func parseVersion(out []byte) (string, error) {
	found := versionLine().FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("no version in the output of haproxy -v: %.200q", out)
	}
	return string(found[1]), nil
}
