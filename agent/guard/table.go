package guard

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/netdump"
)

// TableName is the name of the nftables table, of family inet.
const TableName = "vipgen-vrrp"

// Guard manages the table. The zero value has placed no rules. Its methods may be called
// by several goroutines.
type Guard struct {
	mu       sync.Mutex
	placed   []Group // nil while no rules are in place
	counts   map[key]uint64
	read     map[key]uint64 // counters at the last reading
	restored int

	generations netdump.Generations
	generation  uint32 // last one with a whole table; 0 if unknown
	counted     time.Time
}

// countEvery is the interval at which dropped packets are counted while the table is
// unchanged.
const countEvery = 5 * time.Second

// Place permits the packets of the groups, in one transaction: packets meet either the
// old rules or the new ones. On failure it removes the table, so that no old rule drops
// permitted packets, and returns an error. Without groups it removes the table.
func (g *Guard) Place(groups []Group) error {
	groups = Merge(groups)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(groups) == 0 {
		return g.remove()
	}
	if g.placed != nil && equal(groups, g.placed) {
		return nil
	}
	err := validate(groups)
	if err == nil {
		g.count() // add the counters of the old rules
		err = place(groups)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("placing the guard: %w", explain(err)), g.remove())
	}
	g.placed, g.read, g.generation = groups, nil, 0
	return nil
}

// Poll counts dropped packets, at most every countEvery, and restores a table that
// something else removed or changed.
func (g *Guard) Poll() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.placed == nil {
		return nil
	}
	generation, err := g.generations.Current()
	if err != nil {
		generation = 0 // always read
	}
	if generation != 0 && generation == g.generation && time.Since(g.counted) < countEvery {
		return nil
	}
	whole, err := g.count()
	g.generation = 0
	if err == nil && whole {
		g.generation, g.counted = generation, time.Now()
	}
	if err != nil || whole {
		return err
	}
	if err := place(g.placed); err != nil {
		return fmt.Errorf("placing the guard: %w", explain(err))
	}
	g.read = nil
	g.restored++
	return nil
}

// InPlace reports whether there are rules, and how often they were restored.
func (g *Guard) InPlace() (is bool, restored int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.placed != nil, g.restored
}

// Dropped returns the packets dropped up to the last Poll, of all groups so far.
func (g *Guard) Dropped() (out []state.Dropped) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range slices.SortedFunc(maps.Keys(g.counts), key.compare) {
		out = append(out, state.Dropped{Interface: k.link, Family: k.family(), RouterID: k.router, Packets: g.counts[k]})
	}
	return out
}

// Remove removes the table, even one of an earlier agent.
func (g *Guard) Remove() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.remove()
}

func (g *Guard) remove() error {
	if g.placed != nil {
		g.count()
	}
	g.placed, g.read, g.generation = nil, nil, 0
	g.generations.Close()
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	conn.DelTable(table())
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the guard: %w", explain(err))
	}
	return nil
}

// count adds the counters of the rules in place, and reports whether all rules exist.
func (g *Guard) count() (whole bool, err error) {
	now, whole, err := readCounters(g.placed)
	if err != nil {
		return false, err
	}
	if g.counts == nil {
		g.counts = map[key]uint64{}
	}
	for k, n := range now {
		before := g.read[k]
		if n < before {
			before = 0 // the counters were reset
		}
		g.counts[k] += n - before
	}
	g.read = now
	return whole, nil
}

// explain names the missing capability in place of a bare EPERM.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("needs the capability NET_ADMIN: %w", err)
	}
	return err
}
