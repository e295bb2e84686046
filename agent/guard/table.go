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
	"github.com/vipgen/vipgen/internal/ruleset"
)

// TableName is the name of the nftables table, of family inet.
const TableName = "vipgen-vrrp"

// Guard is the table. The zero value has none in place yet. Its methods may be called
// by several goroutines.
type Guard struct {
	mu       sync.Mutex
	placed   []Group // nil while nothing is in place
	counts   map[key]uint64
	read     map[key]uint64 // as the counters in the table stood
	restored int

	generations ruleset.Generations
	generation  uint32 // in which the table was whole; 0 if that is not known
	counted     time.Time
}

// countEvery is how often dropped packets are counted while the table is as it was.
const countEvery = 5 * time.Second

// Place makes the table let through what the groups say, in one transaction: packets
// meet either the old rules or the new ones. Where that fails there is no table, so
// that no old rule drops what a new one would let through; the error says so.
// Without groups it removes the table.
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
		g.count() // what the old rules counted
		err = place(groups)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("placing the guard: %w", explain(err)), g.remove())
	}
	g.placed, g.read, g.generation = groups, nil, 0
	return nil
}

// Look counts what was dropped, every countEvery at most, and puts the table back where
// somebody else removed or changed it.
func (g *Guard) Look() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.placed == nil {
		return nil
	}
	generation, err := g.generations.Current()
	if err != nil {
		generation = 0 // it is found out by reading
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

// InPlace says whether there are rules, Restored how often somebody else had removed
// or changed them.
func (g *Guard) InPlace() (is bool, restored int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.placed != nil, g.restored
}

// Dropped says what was dropped up to the last Look, of all groups that there were.
func (g *Guard) Dropped() (out []state.Dropped) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range slices.SortedFunc(maps.Keys(g.counts), key.compare) {
		out = append(out, state.Dropped{Interface: k.link, Family: k.family(), RouterID: k.router, Packets: g.counts[k]})
	}
	return out
}

// Remove removes the table, also that of an agent before this one.
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

// count adds up what the rules in place have counted since it was asked last, and says
// whether they are all there.
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
			before = 0 // they began anew
		}
		g.counts[k] += n - before
	}
	g.read = now
	return whole, nil
}

// explain says what is missing where the kernel says no more than EPERM.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("needs the capability NET_ADMIN: %w", err)
	}
	return err
}
