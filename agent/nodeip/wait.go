package nodeip

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Bounds of the pause between attempts without a reported change.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

// Waiter waits for the node's address while the network comes up.
type Waiter struct {
	Spec       *v1alpha1.ClusterConfigSpec
	Preference Preference
	Log        *slog.Logger
	// Read takes a snapshot; nodeip.Read outside tests.
	Read func() (Snapshot, error)
	// Changes triggers an attempt before the pause is over; it may be nil.
	Changes <-chan struct{}
	// Primary reports that the address of the primary family is enough.
	Primary bool
	// Grace bounds the wait for the second family's address once there is the primary
	// one.
	Grace time.Duration
}

// Wait returns once the node has an address of each family of the cluster, or when ctx
// ends. It logs what is missing whenever that changes.
func (w *Waiter) Wait(ctx context.Context) (Choice, error) {
	var grace <-chan time.Time
	logged, over := "", false
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		choice, missing := w.try()
		primaryOnly := missing != "" && len(choice.IPs()) > 0
		switch {
		case missing == "":
			return choice, nil
		case primaryOnly && over:
			w.Log.Warn("continuing with one address family", "missing", missing)
			return choice, nil
		case primaryOnly && grace == nil:
			grace = time.After(w.Grace)
		case !primaryOnly:
			grace, over = nil, false
		}
		if missing != logged {
			w.Log.Info("waiting for an address of this node", "missing", missing, "leftOut", choice.LeftOut())
			logged = missing
		}
		select {
		case <-ctx.Done():
			return Choice{}, fmt.Errorf("no address of this node: %s: %w", missing, context.Cause(ctx))
		case <-w.Changes:
		case <-grace:
			over = true
		case <-time.After(pause):
		}
	}
}

// try returns a choice, and what is missing; empty for nothing.
func (w *Waiter) try() (Choice, string) {
	s, err := w.Read()
	if err != nil {
		return Choice{}, err.Error()
	}
	choice := Choose(s, w.Spec, w.Preference)
	if w.Primary && len(choice.IPs()) > 0 {
		return choice, ""
	}
	missing := lists.Map(choice.Missing(), func(c Chosen) string { return fmt.Sprintf("%s: %s", c.Family, c.Why) })
	return choice, strings.Join(missing, "; ")
}
