package keepalived

import (
	"errors"
	"io/fs"
	"os"

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
func (j *Job) adopt() {
	if _, err := os.Stat(j.below(v1alpha1.TrackDir)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for from, to := range map[string]string{oldQueues: keptQueues, oldVIPs: keptVIPs} {
		data, err := os.ReadFile(j.below(from))
		if err == nil {
			_, err = atomicfile.Write(j.below(to), data, 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.Log.Warn("what an earlier version of the agent left is not taken over", "error", err)
		}
	}
}
