package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heartbeats records the renewals by kubelets: each renews its node's Lease, and a node whose
// kubelet has not done so for the grace period becomes not ready.
type heartbeats struct {
	mu      sync.Mutex
	renewed map[string]time.Time     // last renewal of each kubelet, by the clock that all nodes share
	longest map[string]time.Duration // longest time between two renewals
	unready map[string]bool          // nodes that were not ready at some time
}

func newHeartbeats() *heartbeats {
	return &heartbeats{renewed: map[string]time.Time{}, longest: map[string]time.Duration{}, unready: map[string]bool{}}
}

// renew records the time at which a kubelet renewed the Lease of a node.
func (h *heartbeats) renew(node string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, known := h.renewed[node]; known {
		h.longest[node] = max(h.longest[node], at.Sub(last))
	}
	h.renewed[node] = at
}

// read returns the records of all nodes but one, and whether that one was not ready.
func (h *heartbeats) read(but string) (longest time.Duration, unready []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for node, t := range h.longest {
		if node != but {
			longest = max(longest, t)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(h.unready)) {
		if node != but {
			unready = append(unready, node)
		}
	}
	return longest, unready
}

// watchNodes watches all nodes and their Leases through any API server that answers, and not
// through the VIP.
func (l *load) watchNodes(ctx context.Context) {
	first := 0
	every(ctx, beatEvery, func() {
		for i := range l.servers {
			at := (first + i) % len(l.servers)
			nodes, err := l.servers[at].CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			leases, err := l.servers[at].CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			first = at
			for _, n := range nodes.Items {
				if !ready(n) {
					l.beats.mu.Lock()
					l.beats.unready[n.Name] = true
					l.beats.mu.Unlock()
				}
			}
			for _, lease := range leases.Items {
				if lease.Spec.RenewTime != nil {
					l.beats.renew(lease.Name, lease.Spec.RenewTime.Time)
				}
			}
			return
		}
	})
}

func ready(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
