package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// watchesPerNode is the number of inotify instances of the agents and daemons on a control-plane
// node, which uses more than other nodes.
const watchesPerNode = 13

// checkWatches returns an error if the nodes need more inotify instances than the kernel allows one
// user (inotify(7)).
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
