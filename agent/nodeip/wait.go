package nodeip

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Between tries, when no change is reported.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

// Waiter finds the node's address while the network is still coming up.
type Waiter struct {
	Spec       *v1alpha1.ClusterConfigSpec
	Preference Preference
	Log        *slog.Logger
	// Read takes a snapshot; nodeip.Read outside tests.
	Read func() (Snapshot, error)
	// Changes reports when to look again before the pause is over; nil for never.
	Changes <-chan struct{}
	// Primary says that the primary family's address is enough.
	Primary bool
	// Grace is how long the address of the second family is waited for once the
	// primary family's is there.
	Grace time.Duration
}

// Wait looks until there is an address, of both families in a cluster that uses
// both, or ctx is done. It says once what it waits for, and again when that
// changes.
func (w *Waiter) Wait(ctx context.Context) (Choice, error) {
	var grace <-chan time.Time
	said, over := "", false
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		choice, missing := w.try()
		half := missing != "" && len(choice.IPs()) > 0
		switch {
		case missing == "":
			return choice, nil
		case half && over:
			w.Log.Warn("going on with one address family", "missing", missing)
			return choice, nil
		case half && grace == nil:
			grace = time.After(w.Grace)
		case !half:
			grace, over = nil, false
		}
		if missing != said {
			w.Log.Info("waiting for an address of this node", "missing", missing, "leftOut", choice.LeftOut())
			said = missing
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

// try says what is missing, or nothing.
func (w *Waiter) try() (Choice, string) {
	s, err := w.Read()
	if err != nil {
		return Choice{}, err.Error()
	}
	choice := Choose(s, w.Spec, w.Preference)
	if w.Primary && len(choice.IPs()) > 0 {
		return choice, ""
	}
	var missing []string
	for _, c := range choice.Missing() {
		missing = append(missing, fmt.Sprintf("%s: %s", c.Family, c.Why))
	}
	return choice, strings.Join(missing, "; ")
}
