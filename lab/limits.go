package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// watchesPerNode is how many inotify instances the agents and daemons of a
// control-plane node take, which takes the most.
const watchesPerNode = 13

// checkWatches refuses more nodes than the kernel lets one user have inotify
// instances for (inotify(7)).
func checkWatches(nodes int) error {
	const limit = "/proc/sys/fs/inotify/max_user_instances"
	data, err := os.ReadFile(limit)
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("%s: %w", limit, err)
	}
	if need := nodes * watchesPerNode; need > most {
		return fmt.Errorf("a lab of %d nodes takes %d inotify instances, and the kernel gives out %d: sysctl fs.inotify.max_user_instances=%d", nodes, need, most, 4*need)
	}
	return nil
}
