package nodes

import (
	"context"
	"hash/fnv"
	"os"
	"syscall"
	"time"
)

const (
	// replacedEvery is how often to look whether the kubeconfig was replaced.
	replacedEvery = 10 * time.Second
	// replacedFor is how long no API server answers before that counts, and
	// replacedSpread over how long the nodes of a cluster act on it: the kubeconfigs of
	// all of them are replaced at once when the API's certificate authority changes.
	replacedFor    = time.Minute
	replacedSpread = 10 * time.Minute
)

// AwaitReplaced returns true when the job of a node cannot go on with its kubeconfig: it
// is mounted as a file, another file has its name on the host, as after the machine
// config operator has removed it for kubelet to make anew, and no API server has
// answered for a while. Only a container that starts sees the other file. It returns
// false when ctx ends.
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

// replaced says that no name leads to the file any more, but this mount of it.
func replaced(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}
