package haproxy

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/lazy"
)

// versionLine is how HAProxy says its version; 2.2 calls itself HA-Proxy.
var versionLine = lazy.Regexp(`(?m)^HA-?Proxy version (\d+\.\d+)`)

// version asks the HAProxy of this container for its version, such as "2.6", so that
// it gets no keyword that it does not know (hard case 29), whichever release the
// cluster was rendered for.
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
		return "", fmt.Errorf("HAProxy gives no version: %.200q", out)
	}
	return string(found[1]), nil
}
