package keepalived

import "time"

// lateFrom is how late the watch of the node is before it counts: a node that busy, or that
// stood still, may have sent no advertisement either. The agent has no scheduling policy of
// its own, so it is late sooner than keepalived.
const lateFrom = 200 * time.Millisecond

// late counts by how much the watch of the node ran later than it was to.
func (j *Job) late(by time.Duration) {
	if by >= lateFrom {
		j.watching.lateBy.Add(int64(by))
	}
}
