package health

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// TestHardCase45Unready: while no API server is ready, no node loses points for as long as an
// election of etcd may last, and every node does afterwards; a ready API server counts at once.
func TestHardCase45Unready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReadyCheck(9444)
		c.Close()
		c.Close = nil
		var unready atomic.Bool
		c.Probe = func(context.Context) error {
			if unready.Load() {
				return errors.New("status 503")
			}
			return nil
		}
		b := NewBoard()
		for _, f := range so(FactHAProxy, FactRedirect) {
			b.Set(f)
		}
		path := func() bool {
			_, terms := vrrp.PriorityTerms(&apiGroup, v1alpha1.RoleMaster)
			return terms[0].On(b.Health(&apiGroup))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(ctx, b.Set)
		expect := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			testkit.Equal(t, want, path())
		}
		const margin = 2 * time.Second
		expect(margin, true)
		for range 3 {
			unready.Store(true)
			expect(vrrp.UnreadyAfter-margin, true)
			unready.Store(false)
			expect(margin, true)
		}
		unready.Store(true)
		expect(vrrp.UnreadyAfter+margin, false)
		unready.Store(false)
		expect(margin, true)
	})
}
