package nodes

import (
	"context"
	"hash/fnv"
	"os"
	"syscall"
	"time"
)

const (
	// replacedEvery is the poll interval for a replaced kubeconfig.
	replacedEvery = 10 * time.Second
	// replacedFor is how long no API server must answer before a replaced kubeconfig
	// counts, and replacedSpread the time over which the nodes of a cluster act on it:
	// all kubeconfigs are replaced at once when the API's certificate authority changes.
	replacedFor    = time.Minute
	replacedSpread = 10 * time.Minute
)

// AwaitReplaced returns true when the job cannot continue with its kubeconfig: it is
// mounted as a file, the host has another file of that name (the machine config operator
// removed it so that kubelet writes a new one), and no API server has answered for a
// while. Only a new container sees the new file. It returns false when ctx ends.
func AwaitReplaced(ctx context.Context, kubeconfig, node string, stale func() bool) bool {
	spread := fnv.New32a()
	spread.Write([]byte(node))
	patience := replacedFor + time.Duration(spread.Sum32()%uint32(replacedSpread/time.Second))*time.Second
	tick := time.NewTicker(replacedEvery)
	defer tick.Stop()
	for since := time.Now(); ; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if !replaced(kubeconfig) || !stale() {
			since = time.Now()
		}
		if time.Since(since) >= patience {
			return true
		}
	}
}

// replaced reports whether the file is unlinked on the host and remains only as this
// mount.
func replaced(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}
