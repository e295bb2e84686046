package keepalived

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Where the job kept files until a reboot before it had a directory of its own.
const (
	oldQueues = v1alpha1.RunDir + "/keepalived-queues.json"
	oldVIPs   = v1alpha1.RunDir + "/keepalived-vips.json"
)

// adopt takes over what an earlier version of the agent left since the node booted,
// before the first run in the job's own directory.
func adopt(root string, log *slog.Logger) {
	if _, err := os.Stat(filepath.Join(root, v1alpha1.TrackDir)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for from, to := range map[string]string{oldQueues: keptQueues, oldVIPs: keptVIPs} {
		data, err := os.ReadFile(filepath.Join(root, from))
		if err == nil {
			_, err = atomicfile.Write(filepath.Join(root, to), data, 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("what an earlier version of the agent left is not taken over", "error", err)
		}
	}
}
